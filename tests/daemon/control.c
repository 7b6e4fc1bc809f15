/* SPDX-License-Identifier: BSD-2-Clause */
/* Talks to the control socket of the daemon under test: a line of JSON there, a line back. */
#include "daemon/control.h"

#include "daemon/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int control_open(const struct daemon *daemon)
{
    char path[128];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "forkbeard.sock"));
    return client_open_unix(path);
}

void control_send(int fd, const char *command)
{
    char request[128];
    int n = snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command);

    /* a daemon that has too many clients has replied and closed the socket before we ask */
    if (send(fd, request, (size_t)n, MSG_NOSIGNAL) == -1)
        ck_assert_int_eq(errno, EPIPE);
}

struct json_value control_receive(int fd)
{
    static char *line;
    static size_t size;
    struct json_value answer;
    size_t n = 0;

    do {
        ssize_t received;

        if (n == size) {
            size = 2 * size + 4096;
            line = realloc(line, size);
            ck_assert_ptr_nonnull(line);
        }
        received = recv(fd, line + n, 1, 0);
        ck_assert_msg(received == 1, "received \"%.*s\", then %s", (int)n, line,
            received == 0 ? "the end" : strerror(errno));
        n++;
    } while (line[n - 1] != '\n');
    answer = json_parse(line, n);
    ck_assert_msg(answer.text != NULL && *answer.text == '{', "%.*s", (int)n, line);
    return answer;
}

struct json_value control_ask(const struct daemon *daemon, const char *command)
{
    int fd = control_open(daemon);
    struct json_value answer;

    control_send(fd, command);
    answer = control_receive(fd);
    close(fd);
    return answer;
}

bool control_is_ok(struct json_value answer)
{
    ck_assert_ptr_nonnull(json_member(answer, "ok").text);
    return json_is_true(json_member(answer, "ok"));
}

const char *control_text(struct json_value object, const char *name)
{
    static char text[4096];

    json_text(json_member(object, name), text, sizeof(text));
    return text;
}

int64_t control_number(struct json_value object, const char *name)
{
    int64_t n = json_integer(json_member(object, name), INT64_MIN);

    ck_assert_msg(n != INT64_MIN, "no number \"%s\" in %.*s", name, (int)object.n, object.text);
    return n;
}

struct json_value control_at(struct json_value object, const char *name, unsigned i)
{
    struct json_value array = json_member(object, name), element = { NULL, 0 };

    for (unsigned n = 0; n <= i; n++) {
        element = json_next(array, element);
        ck_assert_msg(
            element.text != NULL, "no %u. of \"%s\" in %.*s", n, name, (int)object.n, object.text);
    }
    return element;
}

unsigned control_count(struct json_value object, const char *name)
{
    struct json_value array = json_member(object, name), element = { NULL, 0 };
    unsigned n = 0;

    ck_assert_ptr_nonnull(array.text);
    while ((element = json_next(array, element)).text != NULL)
        n++;
    return n;
}

struct json_value control_message(struct json_value answer, const char *text)
{
    struct json_value messages = json_member(answer, "messages"), message = { NULL, 0 };

    while ((message = json_next(messages, message)).text != NULL)
        if (strstr(control_text(message, "text"), text) != NULL)
            return message;
    ck_abort_msg("no message \"%s\" in %.*s", text, (int)answer.n, answer.text);
}

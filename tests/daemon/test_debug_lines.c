/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug lines: a client's session under each mechanism logs the lines of DEBUGGING in forkbeard(8),
 * with any numbers; the loop logs the lines listed there. Numbers of connections are unique. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"

#include "base/compiler.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT_MAX 16384
#define MANUAL "man/forkbeard.8.in"
#define ECHO "stream { server { listen 127.0.0.1:$0; echo; } }"

/* A text without the parts varying from run to run. */
struct lines {
    size_t n;
    char text[TEXT_MAX];
};

/* Adds a line, with "0" for each number, and for an address of memory. */
static void add_line(struct lines *lines, const char *line, size_t n)
{
    static const char anywhere[] =
        "io_uring returns a send: "; /* a wake-up brings it, whose ever */

    if (memmem(line, n, anywhere, strlen(anywhere)) != NULL)
        return;
    ck_assert_uint_lt(lines->n + n + 2, sizeof(lines->text));
    for (size_t i = 0; i < n; i++) {
        lines->text[lines->n++] = isdigit((unsigned char)line[i]) ? '0' : line[i];
        if (strncmp(line + i, "0x", 2) == 0)
            while (i + 1 < n && isalnum((unsigned char)line[i + 1]))
                i++;
        while (i + 1 < n && isdigit((unsigned char)line[i]) && isdigit((unsigned char)line[i + 1]))
            i++;
    }
    lines->text[lines->n++] = '\n';
    lines->text[lines->n] = '\0';
}

/* Replaces the manual's apostrophes by the log's. */
static void unescape(char *line)
{
    char *at;

    while ((at = strstr(line, "\\(aq")) != NULL) {
        *at = '\'';
        memmove(at + 1, at + 4, strlen(at + 4) + 1);
    }
}

/* Reads the manual's example behind the comment `name`. */
static void read_manual(const char *name, struct lines *lines)
{
    const char *source = getenv("srcdir");
    char path[512], line[512], mark[64];
    bool found = false, shown = false;
    FILE *file;

    snprintf(path, sizeof(path), "%s/" MANUAL, source != NULL ? source : ".");
    snprintf(mark, sizeof(mark), ".\\\" debug lines: %s\n", name);
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    lines->n = 0;
    lines->text[0] = '\0';
    while (fgets(line, sizeof(line), file) != NULL) {
        if (shown && strcmp(line, ".Ed\n") == 0)
            break;
        if (shown) {
            unescape(line);
            add_line(lines, line, strcspn(line, "\n"));
        }
        found = found || strcmp(line, mark) == 0;
        shown = shown || (found && strncmp(line, ".Bd -literal", 12) == 0);
    }
    fclose(file);
}

/* Takes the lines of a connection out of the log, without time, process and addresses. */
static void read_session(struct daemon *daemon, struct lines *lines)
{
    const char *at = daemon_text(daemon, "error.log");

    lines->n = 0;
    while (*at != '\0') {
        size_t n = strcspn(at, "\n");
        const char *line = memmem(at, n, "#0: *", 5);
        const char *end =
            line == NULL ? NULL : memmem(line, (size_t)(at + n - line), ", client: ", 10);

        if (line != NULL)
            add_line(lines, line + 4, (size_t)((end != NULL ? end : at + n) - (line + 4)));
        at += n + (at[n] == '\n');
    }
}

START_TEST(a_session_is_as_the_manual_shows_it)
{
    static struct lines shown, logged;
    const char *mechanism = mechanisms_name(_i);
    struct daemon *daemon =
        daemon_start_new(1, "events { use %s; debug_connection localhost; } " ECHO, mechanism);
    int client = client_open(daemon->ports[0]);

    daemon_wait_log(daemon, "starts watching: ");
    client_echo(client, "hello");
    daemon_wait_log(daemon, "sent 5 of 5 bytes");
    close(client);
    daemon_wait_log(daemon, "client disconnected");
    daemon_stop(daemon, SIGTERM);
    read_session(daemon, &logged);
    read_manual(mechanism, &shown);
    ck_assert_msg(strcmp(shown.text, logged.text) == 0,
        MANUAL " shows another session under %s.\nIt shows:\n%s\nThe daemon says:\n%s", mechanism,
        shown.text, logged.text);
    daemon_finish(daemon);
}
END_TEST

/* Whether each listed line of the manual has been logged lately, in any order. */
static bool has_all(struct daemon *daemon, const struct lines *listed)
{
    static struct lines logged;
    const char *at = daemon_text(daemon, "debug.log"), *line;
    size_t n;

    logged.n = 0;
    for (size_t length = strlen(at); length > sizeof(logged.text) / 2;) { /* the latest */
        at += length - sizeof(logged.text) / 2;
        length = strlen(at);
    }
    for (; *at != '\0'; at += n + (at[n] == '\n')) {
        n = strcspn(at, "\n");
        line = memmem(at, n, "#0: ", 4);
        if (line != NULL)
            add_line(&logged, line + 4, n - (size_t)(line + 4 - at));
    }
    for (line = listed->text; *line != '\0'; line += n + 1) {
        n = strcspn(line, "\n");
        if (memmem(logged.text, logged.n, line, n + 1) == NULL)
            return false;
    }
    return true;
}

/* Two clients: the first is timed out while the second is connected, so that every kind of line
 * comes; false, too, where the test was too slow for the timeout. */
static bool says_all(struct daemon *daemon, const struct lines *listed)
{
    int idle = client_open(daemon->ports[0]), late;
    bool served;
    char byte;

    served = send(idle, "1", 1, MSG_NOSIGNAL) == 1 && recv(idle, &byte, 1, 0) == 1;
    late = client_open(daemon->ports[0]);
    client_expect_gone(late);
    close(late);
    close(idle);
    return served && has_all(daemon, listed);
}

START_TEST(lines_of_the_loop_are_those_of_the_manual)
{
    static struct lines listed;
    struct daemon *daemon = daemon_create(1);

    daemon_owns(daemon, "debug.log");
    daemon_configure(daemon,
        "error_log debug.log debug; worker_processes 2; "
        "events { use poll; accept_mutex_delay 20ms; } stream { first_byte_timeout 30ms; "
        "server { listen 127.0.0.1:$0; echo; } }");
    daemon_start(daemon);
    read_manual("loop", &listed);
    ck_assert_uint_gt(listed.n, 0);
    WAIT_FOR(says_all(daemon, &listed));
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

/* Builds without lines of events log it once where the lines are asked for, and have the lines of
 * connections all the same. */
START_TEST(a_build_without_the_lines_says_so)
{
    static const char *const asks[] = { "events { debug_connection 127.0.0.1; } " ECHO,
        "error_log debug.log debug; events { } " ECHO };
    const char *notice = "debug lines of events are not in this build";
    struct daemon *daemon = daemon_create(1);

    daemon_owns(daemon, "debug.log");
    daemon_configure(daemon, "%s", asks[_i]);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(daemon_count_log(daemon, notice), DEBUG_BUILD ? 0 : 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "received 1 bytes"), _i == 0);
    if (!DEBUG_BUILD)
        ck_assert_uint_eq(daemon_count_log(daemon, ": descriptor "), 0);
    daemon_finish(daemon);
}
END_TEST

/* A name without an address is a mistake with a place. */
START_TEST(an_unknown_name_is_a_mistake)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon, "events {\n  debug_connection no-such-host.invalid;\n} " ECHO);
    ck_assert_int_ne(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(
        daemon->err, "invalid value \"no-such-host.invalid\" in \"debug_connection\" directive: "));
    ck_assert_ptr_nonnull(strstr(daemon->err, "forkbeard.conf:4:20"));
    daemon_finish(daemon);
}
END_TEST

#define CLIENTS 300
#define NUMBER_MAX 2000

/* Marks the number of each logged connection, and fails on a duplicate. */
static unsigned count_numbers(struct daemon *daemon)
{
    bool seen[NUMBER_MAX] = { false };
    const char *at = daemon_text(daemon, "info.log");
    unsigned n = 0;

    while ((at = strstr(at, "#0: *")) != NULL) {
        char *end;
        unsigned long number = strtoul(at + 5, &end, 10);

        at = end;
        if (strncmp(end, " client 127.", 12) != 0)
            continue;
        ck_assert_uint_lt(number, NUMBER_MAX);
        ck_assert_msg(!seen[number], "two connections have the number %lu", number);
        seen[number] = true;
        n++;
    }
    return n;
}

/* No number comes twice, whichever worker and generation takes the client. */
START_TEST(numbers_are_given_once)
{
    struct daemon *daemon = daemon_create(1);

    daemon_owns(daemon, "info.log");
    daemon_configure(daemon, "error_log info.log info; worker_processes 4; events { } " ECHO);
    daemon_start(daemon);
    for (int i = 0; i < CLIENTS; i++) {
        client_run_session(daemon->ports[0]);
        if (i == CLIENTS / 2)
            ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    }
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(count_numbers(daemon), CLIENTS);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (DEBUG_BUILD) {
        tcase_add_loop_test(tcase, a_session_is_as_the_manual_shows_it, 0, mechanisms_count());
        tcase_add_test(tcase, lines_of_the_loop_are_those_of_the_manual);
    }
    tcase_add_loop_test(tcase, a_build_without_the_lines_says_so, 0, 2);
    tcase_add_test(tcase, an_unknown_name_is_a_mistake);
    tcase_add_test(tcase, numbers_are_given_once);
}

TEST_MAIN("debug_lines", add_tests)

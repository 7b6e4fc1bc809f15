/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/ask.h"

#include "base/json.h"
#include "process/config_check.h"
#include "process/pidfile.h"
#include "process/show.h"
#include "process/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A line of the daemon's. */
struct answer {
    char *text; /* NULL: there is none */
    size_t n;
};

/* A connected socket; -1 with errno. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd, error;

    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int send_command(int fd, const char *command)
{
    char request[64];
    int n = snprintf(request, sizeof(request), "{\"command\":\"%s\"}\n", command);
    ssize_t sent;

    do
        sent = send(fd, request, (size_t)n, MSG_NOSIGNAL); /* a new socket takes it at once */
    while (sent == -1 && errno == EINTR);
    /* one that refuses us may have closed already: what it says is more */
    return sent == n || errno == EPIPE ? 0 : -1;
}

/* Receives up to the line's end; nothing with errno 0 where the other side has ended before it. */
static struct answer receive_answer(int fd)
{
    struct answer answer = { NULL, 0 };
    size_t size = 0;

    while (answer.n == 0 || answer.text[answer.n - 1] != '\n') {
        ssize_t n = 0;

        if (size == answer.n) {
            char *larger = realloc(answer.text, size = size > 0 ? 2 * size : 4096);

            if (larger == NULL)
                break;
            answer.text = larger;
        }
        n = recv(fd, answer.text + answer.n, size - answer.n, 0);
        if (n == -1 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? 0 : errno;
            free(answer.text);
            return (struct answer) { NULL, 0 };
        }
        answer.n += (size_t)n;
    }
    return answer;
}

static struct answer ask(int fd, const char *command, struct fb_log *log)
{
    struct answer answer = { NULL, 0 };

    if (send_command(fd, command) == 0)
        answer = receive_answer(fd);
    if (answer.text == NULL)
        fb_log(log, FB_EMERG, errno, "the daemon did not answer \"%s\"", command);
    close(fd);
    return answer;
}

/* The way to the daemon; NULL after a report. */
static struct fb_cycle *load(const struct fb_cmdline *cmdline, struct fb_log *log)
{
    struct fb_cycle_options options = cmdline->cycle;

    options.only_pid = true;
    return fb_cycle_load(&options, log, STDERR_FILENO);
}

static void show_message(struct fb_json_value message, struct fb_log *log)
{
    char level[16], text[4096], file[4096], excerpt[4096];
    int known;

    fb_json_text(fb_json_member(message, "level"), level, sizeof(level));
    fb_json_text(fb_json_member(message, "text"), text, sizeof(text));
    known = fb_level_parse(level);
    if (known == -1)
        known = FB_EMERG;
    if (fb_json_text(fb_json_member(message, "file"), file, sizeof(file)))
        fb_log(log, (enum fb_level)known, 0, "%s in %s:%d:%d", text, file,
            (int)fb_json_integer(fb_json_member(message, "line"), 0),
            (int)fb_json_integer(fb_json_member(message, "column"), 0));
    else
        fb_log(log, (enum fb_level)known, 0, "%s", text);
    if (fb_json_text(fb_json_member(message, "excerpt"), excerpt, sizeof(excerpt)))
        fputs(excerpt, stderr);
}

static const char *consequence(const char *order)
{
    if (strcmp(order, "reload") == 0)
        return ": the configuration before stays in force";
    return strcmp(order, "upgrade") == 0 ? ": the process before goes on to serve" : "";
}

static int show_outcome(
    const struct fb_cmdline *cmdline, const struct answer *answer, struct fb_log *log)
{
    struct fb_json_value outcome = fb_json_parse(answer->text, answer->n);
    struct fb_json_value messages = fb_json_member(outcome, "messages"), message = { NULL, 0 };
    bool ok = fb_json_is_true(fb_json_member(outcome, "ok")), shown = false;
    int64_t pid = fb_json_integer(fb_json_member(outcome, "pid"), 0);
    char error[4096];

    while (!(ok && cmdline->quiet) && (message = fb_json_next(messages, message)).text != NULL) {
        show_message(message, log);
        shown = true;
    }
    if (ok) {
        if (pid > 0 && !cmdline->quiet)
            fb_log(log, FB_NOTICE, 0, "the new binary serves, process %d", (int)pid);
        return EXIT_SUCCESS;
    }
    if (!fb_json_text(fb_json_member(outcome, "error"), error, sizeof(error)))
        snprintf(error, sizeof(error), "the daemon's answer was not understood");
    if (!shown)
        fb_log(log, FB_EMERG, 0, "%s", error);
    fb_log(log, FB_ERROR, 0, "%s failed%s", cmdline->signal, consequence(cmdline->signal));
    return EXIT_FAILURE;
}

/* `why` is an errno, or 0: there is no control socket. */
static int send_signal(
    const struct fb_cmdline *cmdline, const struct fb_cycle *cycle, int why, struct fb_log *log)
{
    const struct fb_signal *s = fb_signals;
    pid_t pid;

    if (strcmp(cmdline->signal, "reload") == 0 &&
        config_check_run(&cmdline->cycle, log, STDERR_FILENO) == -1)
        return EXIT_FAILURE; /* no mistake is sent on its way */
    pid = fb_pidfile_read(cycle->core.pid, log);
    if (pid == -1)
        return EXIT_FAILURE;
    while (s->order == NULL || strcmp(s->order, cmdline->signal) != 0)
        s++;
    if (kill(pid, s->number) == -1) {
        fb_log(log, FB_ALERT, errno, "kill(%d, %d) failed", (int)pid, s->number);
        return EXIT_FAILURE;
    }
    if (!cmdline->quiet)
        fb_log(log, FB_NOTICE, why,
            "%s was sent to process %d, the error log says what comes of it: there is no control "
            "socket",
            s->name, (int)pid);
    return EXIT_SUCCESS;
}

int fb_ask_order(const struct fb_cmdline *cmdline, struct fb_log *log)
{
    struct fb_cycle *cycle = load(cmdline, log);
    int status = EXIT_FAILURE, fd = -1, error = 0;

    if (cycle == NULL)
        return EXIT_FAILURE;
    if (cycle->core.control != NULL) {
        fd = connect_to(cycle->core.control);
        error = errno;
    }
    if (fd == -1) {
        status = send_signal(cmdline, cycle, error, log);
    } else {
        struct answer answer = ask(fd, cmdline->signal, log);

        if (answer.text != NULL)
            status = show_outcome(cmdline, &answer, log);
        free(answer.text);
    }
    fb_cycle_destroy(&cycle);
    return status;
}

static int show_status(
    const struct fb_cmdline *cmdline, const struct answer *answer, struct fb_log *log)
{
    struct fb_json_value status = fb_json_parse(answer->text, answer->n);
    bool ok = fb_json_is_true(fb_json_member(status, "ok"));
    char error[4096];

    if (cmdline->json) {
        fwrite(answer->text, 1, answer->n, stdout);
    } else if (ok) {
        fb_show_status(status, stdout);
    } else {
        if (!fb_json_text(fb_json_member(status, "error"), error, sizeof(error)))
            snprintf(error, sizeof(error), "the daemon's answer was not understood");
        fb_log(log, FB_EMERG, 0, "%s", error);
    }
    return ok && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int fb_ask_status(const struct fb_cmdline *cmdline, struct fb_log *log)
{
    struct fb_cycle *cycle = load(cmdline, log);
    int status = EXIT_FAILURE, fd = -1;

    if (cycle == NULL)
        return EXIT_FAILURE;
    if (cycle->core.control == NULL)
        fb_log(log, FB_EMERG, 0, "there is no control socket: see \"control\"");
    else if ((fd = connect_to(cycle->core.control)) == -1)
        fb_log(log, FB_EMERG, errno, "nobody answers on the control socket \"%s\"",
            cycle->core.control);
    if (fd != -1) {
        struct answer answer = ask(fd, "status", log);

        if (answer.text != NULL)
            status = show_status(cmdline, &answer, log);
        free(answer.text);
    }
    fb_cycle_destroy(&cycle);
    return status;
}

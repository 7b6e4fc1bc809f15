/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends all master processes of a configuration and waits for the ends: at its paths, the old
 * process of an upgrade, and quitting processes. A process is known by its control socket, or by
 * its pid file in a configuration without a socket; names left by killed processes are skipped. */
#include "cli/wait.h"

#include "base/compiler.h"
#include "cli/command.h"
#include "cli/exchange.h"
#include "cli/masters.h"
#include "os/process.h"
#include "process/signals.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS 5000
/* Time limit of a stop: two seconds for workers that do not end, and some more for the process. */
#define STOP_MS 5000
#define POLL_MS 20 /* poll interval */

/* A master process that is to end. */
struct ending {
    pid_t pid;                    /* -1: not known */
    struct cli_exchange exchange; /* closed by the process's end alone */
    int handle;                   /* -1: the connection alone tells */
    bool ended;
};

struct endings {
    struct ending *list;
    unsigned n;
};

/* Sends a command by a connection that stays open, or as a signal; -1 with errno. */
static int send_end_command(
    const struct masters_entry *entry, struct cli_exchange *exchange, const char *command)
{
    *exchange = (struct cli_exchange) { .fd = -1 };
    if (entry->control == NULL)
        return entry->pid > 0 ? kill(entry->pid, signals_named(command)->number) : -1;
    return cli_request(exchange, entry->control, command, cli_now_ms() + CONNECT_MS);
}

/* Whether a process has ended: by the handle, if a descriptor or the only means, else by the end of
 * the connection, behind the reply. */
static bool ending_is_over(const struct ending *ending)
{
    int fd = ending->exchange.fd, handle = ending->handle;
    char bytes[4096];
    ssize_t n = 1;

    if (handle != -1 && (fd == -1 || os_handle_descriptor(handle) != -1))
        return os_handle_has_ended(handle);
    while (n > 0)
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return n == 0 || (errno != EINTR && errno != EAGAIN);
}

/* Waits until all have ended; false at the deadline. */
static bool wait_for_all(struct endings *endings, int64_t deadline)
{
    for (;;) {
        const struct ending *left = NULL;

        for (unsigned i = 0; i < endings->n; i++) {
            endings->list[i].ended = endings->list[i].ended || ending_is_over(&endings->list[i]);
            if (!endings->list[i].ended)
                left = &endings->list[i];
        }
        if (left == NULL || cli_now_ms() >= deadline)
            return left == NULL;
        os_handle_wait(left->handle, POLL_MS);
    }
}

/* Sends the command to all; a failed connection counts as an end. The old process of an upgrade
 * comes first: the new process would hand back to it. */
static void begin_endings(
    struct endings *endings, const struct masters *masters, const char *command)
{
    static const enum masters_place order[] = { MASTERS_OLD, MASTERS_FIRST, MASTERS_QUITTING };

    for (size_t place = 0; place < countof(order); place++)
        for (unsigned i = 0; i < masters->n; i++) {
            struct ending *ending = &endings->list[endings->n];
            const struct masters_entry *entry = &masters->list[i];

            if (entry->place != order[place])
                continue;
            *ending = (struct ending) { .pid = entry->pid, .handle = -1 };
            if (send_end_command(entry, &ending->exchange, command) == -1) {
                cli_disconnect(&ending->exchange);
                continue;
            }
            if (entry->pid > 0)
                ending->handle = os_handle_open(entry->pid);
            ending->ended = ending->handle == -1 && ending->exchange.fd == -1;
            endings->n++;
        }
}

/* Tells all to stop, at the second names that a quit has given. */
static void stop_late(const struct endings *endings, const struct core_settings *core,
    int64_t waited_ms, struct log *log)
{
    struct cli_exchange exchange;
    struct masters masters;

    for (unsigned i = 0; i < endings->n; i++)
        if (!endings->list[i].ended)
            log_write(log, LEVEL_WARN, 0,
                "master process %d has not ended within %" PRId64 " ms, and is told to stop",
                (int)endings->list[i].pid, waited_ms);
    if (masters_find(&masters, core, log) == -1)
        return;
    for (unsigned i = 0; i < masters.n; i++) {
        send_end_command(&masters.list[i], &exchange, "stop");
        cli_disconnect(&exchange);
    }
    masters_free(&masters);
}

static int end_all(const struct cmdline *cmdline, const struct core_settings *core,
    const struct masters *masters, struct log *log)
{
    struct endings endings = { calloc(masters->n + 1, sizeof(struct ending)), 0 };
    int status = EXIT_SUCCESS;
    bool all = false;

    if (endings.list == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory to wait for master processes");
        status = EXIT_FAILURE;
    } else {
        begin_endings(&endings, masters, cmdline->signal);
        all = wait_for_all(&endings, cli_now_ms() + cmdline->wait_ms);
        if (!all && strcmp(cmdline->signal, "quit") == 0) {
            stop_late(&endings, core, cmdline->wait_ms, log);
            all = wait_for_all(&endings, cli_now_ms() + STOP_MS);
        }
    }
    for (unsigned i = 0; i < endings.n; i++) {
        if (!endings.list[i].ended) {
            log_write(
                log, LEVEL_EMERG, 0, "master process %d does not end", (int)endings.list[i].pid);
            status = EXIT_NO_REPLY;
        }
        cli_disconnect(&endings.list[i].exchange);
        if (endings.list[i].handle != -1)
            os_handle_close(endings.list[i].handle);
    }
    free(endings.list);
    return status;
}

int cli_wait(const struct cmdline *cmdline, struct log *log)
{
    struct core_settings core;
    int status = EXIT_FAILURE;
    struct masters masters;
    struct cycle *cycle;

    assert(cmdline->wait_ms > 0);
    if (cli_load_paths(cmdline, log, &cycle, &core) == -1)
        return EXIT_FAILURE;
    if (masters_find(&masters, &core, log) == 0)
        status = end_all(cmdline, &core, &masters, log);
    masters_free(&masters);
    cycle_destroy(&cycle);
    return status;
}

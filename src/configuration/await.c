/* SPDX-License-Identifier: BSD-2-Clause */
/* Tries again and again, at growing intervals; the first try takes no time. */
#include "configuration/await.h"

#include "base/log_target.h"
#include "net/listener_socket.h"
#include "pidfile/pidfile.h"
#include "process/process_ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define AWAIT_MS 2500
#define FIRST_MS 10
#define LONGEST_MS 320

/* Logs the reason of a wait, and shows it on our terminal unless the log does so. */
PRINTF_FORMAT(2, 3)
static void log_wait(struct log *log, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_write(log, LEVEL_NOTICE, 0, "%s, trying again for %d ms", text, AWAIT_MS);
    for (unsigned i = 0; i < log->target_n; i++)
        if (!log_target_is_own(&log->targets[i]) && log->targets[i].level >= LEVEL_NOTICE)
            return;
    if (isatty(STDERR_FILENO))
        dprintf(STDERR_FILENO, "forkbeard: %s, trying again for %d ms\n", text, AWAIT_MS);
}

static bool is_told_to_end(void)
{
    return signals_given(COMMAND_TERM) || signals_given(COMMAND_TERMINATE) ||
           signals_given(COMMAND_QUIT);
}

/* Sleeps until the next try; false: the time is over, or the process is to end. */
static bool sleep_between(int *waited_ms, int *pause_ms)
{
    if (*waited_ms >= AWAIT_MS || is_told_to_end())
        return false;
    process_ops->pause(*pause_ms);
    *waited_ms += *pause_ms;
    if (*pause_ms < LONGEST_MS)
        *pause_ms *= 2;
    return !is_told_to_end();
}

void await_lock(const char *path, struct log *log)
{
    int waited_ms = 0;
    pid_t holder;

    if (!pidfile_is_taken(path, &holder))
        return;
    log_wait(log, "master process %d has the pid file \"%s\"", (int)holder, path);
    /* at short intervals: the process may release it at once, and clients wait */
    while (pidfile_is_taken(path, &holder) && sleep_between(&waited_ms, &(int) { FIRST_MS }))
        continue;
}

static const struct listener *find_taken_address(
    const struct listeners *listeners, const struct adopted *adopted, struct log *log)
{
    const struct listener *listener;

    STAILQ_FOREACH (listener, &listeners->list, link)
        if (adopted_holder(adopted, listener) == NULL && listener_is_taken(listener, log))
            return listener;
    return NULL;
}

void await_addresses(
    const struct listeners *listeners, const struct adopted *adopted, struct log *log)
{
    const struct listener *taken = find_taken_address(listeners, adopted, log);
    int waited_ms = 0, pause_ms = FIRST_MS;

    if (taken == NULL)
        return;
    log_wait(log, "another process listens on %s", taken->text);
    while (
        sleep_between(&waited_ms, &pause_ms) && find_taken_address(listeners, adopted, log) != NULL)
        continue;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks again and again whether a lock or an address has become free, at growing intervals. The
 * first look that finds it free costs no time. */
#include "process/await.h"

#include "process/pidfile.h"
#include "process/signals.h"

#define AWAIT_MS 2500
#define FIRST_MS 10
#define LONGEST_MS 320

/* Sleeps until the next look; false when there is to be none. */
static bool sleep_between(int *waited_ms, int *pause_ms)
{
    if (*waited_ms >= AWAIT_MS || !signals_sleep(*pause_ms))
        return false;
    *waited_ms += *pause_ms;
    if (*pause_ms < LONGEST_MS)
        *pause_ms *= 2;
    return true;
}

void await_lock(const char *path, struct log *log)
{
    int waited_ms = 0;
    pid_t holder;

    if (!pidfile_is_taken(path, &holder))
        return;
    log_write(log, LEVEL_NOTICE, 0,
        "master process %d has the pid file \"%s\", trying again for %d ms", (int)holder, path,
        AWAIT_MS);
    /* at short intervals: the process may release it at once, and clients wait */
    while (pidfile_is_taken(path, &holder) && sleep_between(&waited_ms, &(int) { FIRST_MS }))
        continue;
}

static const struct listener *find_taken(
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
    const struct listener *taken = find_taken(listeners, adopted, log);
    int waited_ms = 0, pause_ms = FIRST_MS;

    if (taken == NULL)
        return;
    log_write(log, LEVEL_NOTICE, 0, "another process listens on %s, trying again for %d ms",
        taken->text, AWAIT_MS);
    while (sleep_between(&waited_ms, &pause_ms) && find_taken(listeners, adopted, log) != NULL)
        continue;
}

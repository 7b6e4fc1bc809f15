/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the cause of a worker's death: in the master's own record and the exit status, and, where
 * these leave it open, in the worker's last words. Never decides what follows. */
#include "pool/death.h"

#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *const death_names[POOL_DEATHS] = {
    [POOL_KILL_START_LATE] = "start_timeout",
    [POOL_KILL_STUCK] = "watchdog",
    [POOL_KILL_DRAIN_LATE] = "shutdown_timeout",
    [POOL_KILL_CLOSE_LATE] = "stop_timeout",
    [POOL_KILL_CHANNEL_LOST] = "channel_lost",
    [POOL_KILL_CHANNEL] = "channel_rules",
    [POOL_DEATH_SIGNAL] = "signal",
    [POOL_DEATH_EXIT] = "exit",
    [POOL_DEATH_WAIT] = "wait_failed",
    [POOL_DEATH_START] = "start_failed",
};

static const char *const killed_because[POOL_KILLS] = {
    [POOL_KILL_START_LATE] = "it was not ready within worker_start_timeout",
    [POOL_KILL_STUCK] = "it did not leave this place (worker_watchdog)",
    [POOL_KILL_DRAIN_LATE] = "it had not ended 1 s after worker_shutdown_timeout",
    [POOL_KILL_CLOSE_LATE] = "it had not ended 2 s after it was told to",
    [POOL_KILL_CHANNEL_LOST] = "it had closed the channel to the master, and not ended within 1 s",
    [POOL_KILL_CHANNEL] = "it had broken a rule of the channel to the master",
};

void death_read(const struct pool_worker *worker, struct death_words *words)
{
    const struct slot *slot = shared_slot(worker->generation->pool->shared, worker->slot);
    uint64_t most = (uint64_t)worker->generation->cycle->events.worker_connections;

    assert(role_is(ROLE_MASTER));
    *words = (struct death_words) {
        .now = heartbeat_now(&slot->heartbeat),
        .jobs = atomic_load_explicit(&slot->heartbeat.jobs, memory_order_relaxed),
        .end = atomic_load_explicit(&slot->heartbeat.end, memory_order_relaxed),
        .sessions = atomic_load_explicit(&slot->counters.n[COUNTER_ACTIVE], memory_order_relaxed),
    };
    if (words->sessions > most)
        words->sessions = most;
}

static const char *protocol_name(const struct cycle *cycle, unsigned index)
{
    const struct server *server;

    STAILQ_FOREACH (server, &cycle->stream.servers, link)
        if (server->protocol != NULL && server->protocol_index == index)
            return server->protocol->name;
    return NULL;
}

/* Appends " in WHAT of protocol ..." to the text, behind `before`. */
static void add_place(const struct cycle *cycle, const char *before, const char *what,
    unsigned index, char text[DEATH_PLACE_MAX])
{
    const char *protocol = protocol_name(cycle, index);
    size_t n = strlen(text);

    assert(what != NULL && n < DEATH_PLACE_MAX);
    if (protocol == NULL)
        snprintf(text + n, DEATH_PLACE_MAX - n, "%sin %s", before, what);
    else
        snprintf(
            text + n, DEATH_PLACE_MAX - n, "%sin %s of protocol \"%s\"", before, what, protocol);
}

void death_place(
    const struct cycle *cycle, const struct death_words *words, char text[DEATH_PLACE_MAX])
{
    enum callback callback = heartbeat_callback(words->now);
    const char *before = "";
    char what[64];

    text[0] = '\0';
    if (callback == CALLBACK_NONE) {
        snprintf(text, DEATH_PLACE_MAX, "outside of callbacks");
    } else if (callback != CALLBACK_WAIT) {
        snprintf(what, sizeof(what), "callback \"%s\"", heartbeat_callback_names[callback]);
        add_place(cycle, "", what, heartbeat_protocol(words->now), text);
    }
    if (text[0] != '\0')
        before = ", or ";
    if (heartbeat_job_n(words->jobs) > 0)
        add_place(cycle, before, "a job", heartbeat_job_protocol(words->jobs), text);
}

static enum pool_death find_cause(
    const struct pool_worker *worker, int status, const struct death_words *words)
{
    if (WIFSIGNALED(status))
        return worker->killed != POOL_KILL_NONE ? (enum pool_death)worker->killed
                                                : POOL_DEATH_SIGNAL;
    switch (heartbeat_end_of(words->end)) {
    case HEARTBEAT_RETURNED:
        return WEXITSTATUS(status) == 0 ? (enum pool_death)POOL_KILL_NONE : POOL_DEATH_START;
    case HEARTBEAT_WAIT_FAILED:
        return POOL_DEATH_WAIT;
    default: /* before its first callback no protocol can have called exit() */
        return words->now == 0 ? POOL_DEATH_START : POOL_DEATH_EXIT;
    }
}

/* Formats ", 3 sessions were lost". */
static const char *format_loss(const struct death_words *words, char text[64])
{
    text[0] = '\0';
    if (words->sessions > 0)
        snprintf(text, 64, ", %" PRIu64 " %s lost", words->sessions,
            words->sessions == 1 ? "session was" : "sessions were");
    return text;
}

static void log_signal(struct pool_worker *worker, int status, const char *place, const char *loss)
{
    bool killed = worker->killed != POOL_KILL_NONE;

    assert(worker->killed < POOL_KILLS);
    log_quota_write(&worker->lines, LEVEL_ALERT, 0,
        "worker process %d exited on signal %d%s%s%s%s%s%s", (int)worker->pid, WTERMSIG(status),
        WCOREDUMP(status) ? " (core dumped)" : "", place[0] != '\0' ? " " : "", place,
        killed ? ", killed: " : "", killed ? killed_because[worker->killed] : "", loss);
}

/* Logs an exit that nobody has asked for. */
static void log_exit(struct pool_worker *worker, int status, const struct death_words *words,
    const char *place, const char *loss)
{
    bool left = heartbeat_end_of(words->end) == HEARTBEAT_THREAD_LEFT;
    char call[32];

    snprintf(call, sizeof(call), left ? "pthread_exit()" : "exit(%d)", WEXITSTATUS(status));
    log_quota_write(&worker->lines, LEVEL_ALERT, 0, "worker process %d called %s%s%s%s",
        (int)worker->pid, call, place[0] != '\0' ? " " : "", place, loss);
}

/* Logs an end by which sessions may have been lost. */
static void log_loss(
    struct pool_worker *worker, int status, enum pool_death cause, const struct death_words *words)
{
    char place[DEATH_PLACE_MAX], text[64];
    const char *loss = format_loss(words, text);

    death_place(worker->generation->cycle, words, place);
    if (WIFSIGNALED(status))
        log_signal(worker, status, place, loss);
    else if (cause == POOL_DEATH_EXIT)
        log_exit(worker, status, words, place, loss);
    else
        log_quota_write(&worker->lines, LEVEL_ALERT, heartbeat_error_of(words->end),
            "worker process %d exited with code %d%s: it could not wait for events",
            (int)worker->pid, WEXITSTATUS(status), loss);
}

enum pool_death death_log(struct pool_worker *worker, int status, const struct death_words *words)
{
    enum pool_death cause = find_cause(worker, status, words);

    assert(worker->pid > 1 && cause < POOL_DEATHS);
    worker->generation->pool->deaths[cause]++;
    if (WIFSIGNALED(status) || cause == POOL_DEATH_EXIT || cause == POOL_DEATH_WAIT)
        log_loss(worker, status, cause, words);
    else
        log_quota_write(&worker->lines, LEVEL_NOTICE, 0, "worker process %d exited with code %d",
            (int)worker->pid, WEXITSTATUS(status));
    return cause;
}

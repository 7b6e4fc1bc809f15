/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the cause of a worker's death in exit status and last words. Never decides what follows. */
#include "process/death.h"

#include "process/role.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void death_read(
    struct shared *shared, struct slot_id id, int64_t sessions, struct death_words *words)
{
    const struct slot *slot = shared_slot(shared, id);

    assert(role_is(ROLE_MASTER) && sessions > 0);
    *words = (struct death_words) {
        .now = heartbeat_now(&slot->heartbeat),
        .jobs = atomic_load_explicit(&slot->heartbeat.jobs, memory_order_relaxed),
        .end = atomic_load_explicit(&slot->heartbeat.end, memory_order_relaxed),
        .sessions = atomic_load_explicit(&slot->counters.n[COUNTER_ACTIVE], memory_order_relaxed),
    };
    if (words->sessions > (uint64_t)sessions)
        words->sessions = (uint64_t)sessions;
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
static void add_callback_place(const struct cycle *cycle, const char *before, const char *what,
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
    if (cycle == NULL)
        return;
    if (callback == CALLBACK_NONE) {
        snprintf(text, DEATH_PLACE_MAX, "outside of callbacks");
    } else if (callback != CALLBACK_WAIT) {
        snprintf(what, sizeof(what), "callback \"%s\"", heartbeat_callback_names[callback]);
        add_callback_place(cycle, "", what, heartbeat_protocol(words->now), text);
    }
    if (text[0] != '\0')
        before = ", or ";
    if (heartbeat_job_n(words->jobs) > 0)
        add_callback_place(cycle, before, "a job", heartbeat_job_protocol(words->jobs), text);
}

static enum death_cause find_cause(int status, const struct death_words *words)
{
    if (WIFSIGNALED(status))
        return DEATH_SIGNAL;
    switch (heartbeat_end_of(words->end)) {
    case HEARTBEAT_RETURNED:
        return WEXITSTATUS(status) == 0 ? DEATH_ASKED : DEATH_START;
    case HEARTBEAT_WAIT_FAILED:
        return DEATH_WAIT;
    default: /* before its first callback no protocol can have called exit() */
        return words->now == 0 ? DEATH_START : DEATH_EXIT;
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

static void explain_loss(struct death *death, int status, const char *killed,
    const struct cycle *cycle, const struct death_words *words)
{
    bool left = heartbeat_end_of(words->end) == HEARTBEAT_THREAD_LEFT;
    char place[DEATH_PLACE_MAX], room[64], call[32];
    const char *loss = format_loss(words, room), *gap;

    death_place(cycle, words, place);
    gap = place[0] != '\0' ? " " : "";
    snprintf(call, sizeof(call), left ? "pthread_exit()" : "exit(%d)", WEXITSTATUS(status));
    death->level = LEVEL_ALERT;
    if (death->cause == DEATH_SIGNAL)
        snprintf(death->text, sizeof(death->text), "exited on signal %d%s%s%s%s%s%s",
            WTERMSIG(status), WCOREDUMP(status) ? " (core dumped)" : "", gap, place,
            killed != NULL ? ", killed: " : "", killed != NULL ? killed : "", loss);
    else if (death->cause == DEATH_EXIT)
        snprintf(death->text, sizeof(death->text), "called %s%s%s%s", call, gap, place, loss);
    else
        snprintf(death->text, sizeof(death->text),
            "exited with code %d%s: it could not wait for events", WEXITSTATUS(status), loss);
}

void death_explain(struct death *death, int status, const char *killed, const struct cycle *cycle,
    const struct death_words *words)
{
    *death = (struct death) { .cause = find_cause(status, words), .level = LEVEL_NOTICE };
    if (death->cause == DEATH_WAIT)
        death->error = heartbeat_error_of(words->end);
    if (death->cause == DEATH_ASKED || death->cause == DEATH_START)
        snprintf(death->text, sizeof(death->text), "exited with code %d", WEXITSTATUS(status));
    else
        explain_loss(death, status, killed, cycle, words);
}

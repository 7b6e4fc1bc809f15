/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks a random play without further disturbances, after some time: no client waits while a
 * worker has room, and with room for all every client is served. */
#include "plays/random_sessions_private.h"

#include "plays/whole.h"

#define SMALL 6 /* sessions for which any worker has room */

bool rest_has_room(const struct play_process *process, unsigned listener)
{
    const struct heritage *heritage = &process->whole->heritage;
    const struct cycle *cycle = heritage->cycle;
    uint32_t takes = atomic_load(&shared_slot(heritage->shared, heritage->slot)->load.takes);

    if (takes != SLOT_TAKES || cycle->core.worker_processes < 2)
        return false;
    if (listener == LISTENER_EXTRA ||
        (listener == LISTENER_REUSEPORT && !cycle->events.accept_share))
        return false;
    /* a session may have a connection to the server, too */
    return 2 * play_whole_counter(process, COUNTER_ACTIVE) <
           (uint64_t)cycle->events.worker_connections;
}

static void check_waiting(struct random_sessions *random)
{
    const struct play_process *process;

    for (unsigned i = 0; i < random->sessions.n; i++) {
        const struct play_session *session = &random->sessions.list[i];

        if (session->worker != 0 || session->ended)
            continue;
        TAILQ_FOREACH (process, &random->play->processes, link)
            if (process->whole != NULL && !process->exited &&
                rest_has_room(process, session->listener))
                random_sessions_give_up(random, "a client waits, although a worker has room");
    }
}

/* Receives for all clients, until nothing comes any more. */
static void receive_all(struct random_sessions *random)
{
    size_t before, after = 0;

    do {
        before = after;
        after = 0;
        for (unsigned i = 0; i < random->sessions.n; i++) {
            random_sessions_receive(random, &random->sessions.list[i]);
            after += random->sessions.list[i].echoed;
        }
        play_pass(random->play, 10);
    } while (after != before);
}

static void close_ended(struct random_sessions *random)
{
    for (unsigned i = 0; i < random->sessions.n; i++)
        if (random->sessions.list[i].ended)
            play_session_close(&random->sessions, &random->sessions.list[i--]);
}

/* Clients leave, until there is room for all waiting clients. */
static void make_room(struct random_sessions *random)
{
    while (random->sessions.n > SMALL) {
        struct play_session *session =
            &random->sessions.list[random_sessions_below(random, random->sessions.n)];

        random_sessions_receive(random, session);
        play_session_close(&random->sessions, session);
    }
    play_pass(random->play, REST_MS);
    receive_all(random);
}

/* Checks that the statistics of a living master process have the clients of all living workers, and
 * no other. */
static void check_statistics(
    const struct random_sessions *random, const struct play_process *process)
{
    const void *memory = zone_memory(process->whole->heritage.cycle->stream.stats);
    const struct play_process *other;
    uint64_t active = 0;

    if (process->parent == NULL || process->parent->exited)
        return;
    TAILQ_FOREACH (other, &random->play->processes, link)
        if (other->whole != NULL && !other->exited && other->whole->stats == process->whole->stats)
            active += play_whole_counter(other, COUNTER_ACTIVE);
    if (stats_sum_active(memory) != active)
        random_sessions_give_up(random, "the statistics have other clients than the workers");
}

/* Checks the service of all clients, and the counters. */
static void check_served(struct random_sessions *random)
{
    struct play *play = random->play;
    struct play_process *process;

    for (unsigned i = 0; i < random->sessions.n; i++) {
        const struct play_session *session = &random->sessions.list[i];

        if (session->worker == 0)
            random_sessions_give_up(random, "a client waits to be accepted for ever");
        if (!play_session_is_served(session))
            random_sessions_give_up(random, "a client waits for its bytes for ever");
    }
    TAILQ_FOREACH (process, &play->processes, link) {
        if (process->whole == NULL || process->exited)
            continue;
        if (play_whole_counter(process, COUNTER_ACTIVE) !=
            play_sessions_of(&random->sessions, process->pid))
            random_sessions_give_up(random, "a worker counts other sessions than it has");
        check_statistics(random, process);
    }
    if (play_count_workers(play) == 0)
        random_sessions_give_up(random, "there is no worker");
}

void rest_check(struct random_sessions *random)
{
    receive_all(random);
    check_waiting(random);
    if (random->small)
        make_room(random);
    close_ended(random);
    play_pass(random->play, 100);
    check_served(random);
}

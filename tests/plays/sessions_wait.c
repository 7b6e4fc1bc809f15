/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks how long clients of a random play wait to be accepted, while a worker takes clients and
 * has room. Processes take no time on the play's clock, so each client is accepted before the clock
 * moves, unless workers wait for each other: the manual bounds the time, at accept_mutex,
 * accept_mutex_delay and accept_share. */
#include "plays/random_sessions_private.h"

#include "plays/whole.h"

#include <poll.h>

/* After a transition: no worker waits any more for a drained worker. */
#define QUIET_MS 1000
/* accept_share: a worker leaves clients to neighbours, before taking any. */
#define PASS_MS 2
/* accept_mutex: a stopped worker loses the turn while clients wait. */
#define TURN_MS 1020
/* The most stopped workers that hold the accept mutex in turn. */
#define STOPPED_MOST 5
/* pool/listeners.c: a worker has died, and the rest look for the clients it was woken for. */
#define RESCAN_MS 20

static bool takes_clients(const struct play_process *process)
{
    const struct heritage *heritage;

    if (process->whole == NULL || process->exited)
        return false;
    heritage = &process->whole->heritage;
    if (heritage->cycle->core.worker_processes < 2)
        return true; /* a single worker does not publish it */
    return atomic_load(&shared_slot(heritage->shared, heritage->slot)->load.takes) !=
           SLOT_TAKES_NONE;
}

/* The number of the generation that takes clients; 0: there are several, perhaps of several master
 * processes. */
static uint64_t find_generation(const struct play *play)
{
    const struct play_process *process;
    uint64_t found = 0;

    TAILQ_FOREACH (process, &play->processes, link) {
        pid_t master = process->parent != NULL ? process->parent->pid : 1;
        uint64_t generation;

        if (!takes_clients(process))
            continue;
        generation = (uint64_t)master << 32 | process->whole->heritage.place >> PLACE_NUMBER_BITS;
        if (found != 0 && found != generation)
            return 0;
        found = generation;
    }
    return found;
}

static bool has_stopped(const struct play *play)
{
    const struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->stopped)
            return true;
    return false;
}

/* How long a client may wait where workers of this configuration take clients. */
static uint64_t find_bound_of(
    const struct random_sessions *random, const struct events_settings *events)
{
    bool turns = events->accept_mutex && !events->mechanism->exclusive;

    if (random->quiet_ms >= QUIET_MS) /* a turn may be left to who was woken for a queue */
        return turns && events->accept_share ? PASS_MS : 0;
    if (!turns && !random->noisy)
        return PASS_MS;
    if (!turns) /* a worker, woken and then stopped, keeps a client waiting */
        return has_stopped(random->play) ? UINT64_MAX : RESCAN_MS;
    if (random->noisy)
        return STOPPED_MOST * TURN_MS;
    return (uint64_t)events->accept_mutex_delay;
}

/* The longest bound of all workers with clients. */
static uint64_t find_bound(const struct random_sessions *random)
{
    const struct play_process *process;
    uint64_t longest = 0;

    TAILQ_FOREACH (process, &random->play->processes, link) {
        uint64_t bound = 0;

        if (takes_clients(process))
            bound = find_bound_of(random, &process->whole->heritage.cycle->events);
        longest = bound > longest ? bound : longest;
    }
    return longest;
}

/* Whether two master processes live: a drained master has separate queues of reuseport, if it had
 * more workers, and the kernel gives clients to them. */
static bool are_two(const struct play *play)
{
    const struct play_process *process;
    unsigned n = 0;

    TAILQ_FOREACH (process, &play->processes, link)
        n += process->is_master && !process->exited;
    return n > 1;
}

/* Whether a worker could accept a client of the listener. A queue of reuseport may be another
 * master process's, or a gone worker's. */
static bool could_be_accepted(const struct random_sessions *random, unsigned listener)
{
    const struct play_process *process;

    if (listener == LISTENER_REUSEPORT && (random->quiet_ms < QUIET_MS || are_two(random->play)))
        return false;
    TAILQ_FOREACH (process, &random->play->processes, link)
        if (process->whole != NULL && !process->exited && !process->stopped &&
            rest_has_room(process, listener))
            return true;
    return false;
}

static bool waits(const struct play_session *session)
{
    struct pollfd one = { .fd = session->fd, .events = POLLRDHUP };

    return session->worker == 0 && session->safe && !session->ended && poll(&one, 1, 0) == 0;
}

/* Notes for how long the same workers have served, and were not disturbed. */
static void note_quiet(struct random_sessions *random, uint64_t ms)
{
    uint64_t generation = find_generation(random->play);

    if (random->noisy || generation == 0 || generation != random->generation)
        random->quiet_ms = 0;
    else
        random->quiet_ms += ms;
    random->generation = generation;
}

static NORETURN void give_up(
    const struct random_sessions *random, uint64_t waited_ms, uint64_t bound_ms)
{
    char what[128];

    snprintf(what, sizeof(what),
        "a client waits for %llu ms, of %llu at most, although a worker has room",
        (unsigned long long)waited_ms, (unsigned long long)bound_ms);
    random_sessions_give_up(random, what);
}

void wait_check(struct play *play, uint64_t ms)
{
    struct random_sessions *random = play->arg;
    uint64_t bound;
    bool counts;

    note_quiet(random, ms);
    bound = find_bound(random);
    for (unsigned i = 0; i < random->sessions.n; i++) {
        struct play_session *session = &random->sessions.list[i];

        counts =
            bound < UINT64_MAX && waits(session) && could_be_accepted(random, session->listener);
        session->waited_ms = counts ? session->waited_ms + ms : 0;
        if (session->waited_ms > bound)
            give_up(random, session->waited_ms, bound);
    }
}

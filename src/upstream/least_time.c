/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the peer that has the least average time, for its connections and its weight. A time that
 * is not known counts as none. A peer that was not chosen for long has its time halved for each
 * fail_timeout, so that a slow one is asked again. With `inflight` the tries that have not come so
 * far count for as long as they have lasted: a worker knows its own. */
#include "upstream/least_time.h"

/* Times are compared in steps, and all from here on count the same. */
#define STEP_MS 20
#define MOST_MS 5000
/* More connections than these make no difference, so that a load has 32 bits. */
#define MOST_CONNS ((1u << 24) - 2)

/* Returns how long ago the worker's unfinished tries of the peer have begun, on average. */
static uint64_t running_ms(const struct choice *choice, const struct peer *peer)
{
    uint64_t began;

    if (peer->running == 0)
        return 0;
    began = peer->running_began_ms / peer->running;
    assert(began <= choice_now(choice));
    return choice_now(choice) - began;
}

uint32_t least_time_load(const struct choice *choice, const struct peer *peer)
{
    const struct upstream_balance *balance = &choice->upstream->balance;
    uint64_t ms = peer_time(peer, balance->time) / PEER_TIME_UNIT, idle;
    uint32_t conns = peer_conns(peer);

    if (ms > MOST_MS) /* before it is halved: a damaged time is some halvings long at most */
        ms = MOST_MS;
    idle = peer_age(choice_now(choice), PEER_LOAD(peer->state->checked_ms)) /
           ((uint64_t)peer->server->fail_timeout + 1);
    ms = idle < 32 ? ms >> idle : 0;
    if (balance->inflight && running_ms(choice, peer) > ms)
        ms = running_ms(choice, peer);
    if (ms > MOST_MS)
        ms = MOST_MS;
    return (uint32_t)(ms / STEP_MS + 1) * ((conns < MOST_CONNS ? conns : MOST_CONNS) + 1);
}

void least_time_begin(struct choice *choice)
{
    struct peer *peer = choice->peer;

    CHECK_KIND(peer, PEER_KIND);
    assert(!choice->is_running);
    if (!choice->upstream->balance.inflight)
        return;
    choice->is_running = true;
    peer->running++;
    peer->running_began_ms += choice->began_ms;
}

void least_time_end(struct choice *choice, enum upstream_time time)
{
    struct peer *peer = choice->peer;

    if (!choice->is_running ||
        (time != choice->upstream->balance.time && time != UPSTREAM_TIME_LAST_BYTE))
        return;
    CHECK_KIND(peer, PEER_KIND);
    assert(peer->running > 0 && peer->running_began_ms >= choice->began_ms);
    choice->is_running = false;
    peer->running--;
    peer->running_began_ms -= choice->began_ms;
}

static struct peer *choose(struct choice *choice)
{
    return least_choose(choice, least_time_load);
}

const struct balancer balancer_least_time = {
    .name = "least_time",
    .choose = choose,
    .takes_backup = true,
    .takes_slow_start = true,
};

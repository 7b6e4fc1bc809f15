/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the peer with the least load for its weight, of connections, or of average times; or
 * draws peers by weight (random), with `two` the better peer of two. Loads are compared for their
 * weights crosswise, without divisions. The weight of a server that starts slowly grows; failures
 * do not lessen it here.
 *
 * An unknown time counts as none. The time of a peer not chosen for long is halved every
 * fail_timeout, to ask a slow server again. With `inflight` unfinished tries count for their
 * duration so far: a worker knows only its own tries. */
#include "upstream/balancer.h"

/* Times are compared in steps, and all times from here on count alike. */
#define STEP_MS 20
#define MOST_MS 5000
/* Connections beyond this number make no difference, so that a load has 32 bits. */
#define MOST_CONNS ((1u << 24) - 2)

typedef uint32_t least_load(const struct choice *choice, const struct peer *peer);

struct share {
    uint32_t load, weight;
};

static struct share share_of(const struct choice *choice, const struct peer *peer, least_load *load)
{
    const struct share share = { load(choice, peer), peer_slow_weight(choice, peer) };

    assert(share.weight > 0);
    return share;
}

/* Whether the first has less to do; the products fit, as two numbers of 32 bits. */
static bool is_share_less(struct share a, struct share b)
{
    return (uint64_t)a.load * b.weight < (uint64_t)b.load * a.weight;
}

static bool is_share_equal(struct share a, struct share b)
{
    return (uint64_t)a.load * b.weight == (uint64_t)b.load * a.weight;
}

/* Lets the peers with equal load take turns. */
static struct peer *choose_equal(struct choice *choice, least_load *load, struct share least)
{
    const struct peers *peers = choice->upstream->peers;
    struct round_robin turn = { .best = NULL };

    for (unsigned i = choice_first(choice); i < choice_end_of(choice); i++)
        if (choice_may_use(choice, peers->list[i]) &&
            is_share_equal(share_of(choice, peers->list[i], load), least))
            round_robin_add(&turn, choice, peers->list[i]);
    return round_robin_take(&turn);
}

static struct peer *choose_least(struct choice *choice, least_load *load)
{
    const struct peers *peers = choice->upstream->peers;
    struct share least = { 0, 1 };
    struct peer *best = NULL, *equal = NULL;
    bool many = false;

    assert(peers->kind == PEERS_KIND);
    for (unsigned i = choice_first(choice); i < choice_end_of(choice); i++) {
        struct peer *peer = peers->list[i];
        struct share share;

        if (!choice_may_use(choice, peer))
            continue;
        share = share_of(choice, peer, load);
        if (best == NULL || is_share_less(share, least)) {
            best = peer;
            least = share;
            many = false;
        } else if (is_share_equal(share, least)) {
            many = true;
        }
    }
    if (many) /* other workers may have changed the peers' loads: then there is none */
        equal = choose_equal(choice, load, least);
    return equal != NULL ? equal : best;
}

static uint32_t conn_load(const struct choice *choice, const struct peer *peer)
{
    (void)choice;
    return peer_conns(peer);
}

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

/* The expected time of the present and a new connection, in steps: near equals take turns. */
static uint32_t time_load(const struct choice *choice, const struct peer *peer)
{
    const struct upstream_balance *balance = &choice->upstream->balance;
    uint64_t ms = PEER_LOAD(peer->state->times[balance->time]) / PEER_TIME_UNIT, idle;
    uint32_t conns = peer_conns(peer);

    if (ms > MOST_MS) /* before halving: a damaged time is some halvings long at most */
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

static struct peer *choose_by_conn(struct choice *choice)
{
    return choose_least(choice, conn_load);
}

const struct balancer balancer_least_conn = {
    .name = "least_conn",
    .choose = choose_by_conn,
    .takes_backup = true,
    .takes_slow_start = true,
};

static struct peer *choose_by_time(struct choice *choice)
{
    return choose_least(choice, time_load);
}

const struct balancer balancer_least_time = {
    .name = "least_time",
    .choose = choose_by_time,
    .takes_backup = true,
    .takes_slow_start = true,
};

/* Returns the peer with the lesser load of two, `b` where the loads are equal. */
static struct peer *choose_of_two(struct choice *choice, struct peer *a, struct peer *b)
{
    least_load *load = choice->upstream->balance.two_by_time ? time_load : conn_load;

    assert(a != b);
    return is_share_less(share_of(choice, a, load), share_of(choice, b, load)) ? a : b;
}

/* Leaves the choice to round robin after too many vain draws, and among the backups. */
static struct peer *choose_at_random(struct choice *choice)
{
    struct upstreams *upstreams = choice_upstreams(choice);
    uint64_t weight = balancer_weight(choice);
    uint32_t below = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
    struct peer *first = NULL;

    if (choice->backup || weight == 0)
        return round_robin_choose(choice);
    while (choice->misses < BALANCER_MISSES) {
        struct peer *peer = balancer_peer_at(choice, upstreams->random(upstreams, below));

        if (peer == first || !choice_may_use(choice, peer))
            choice->misses++;
        else if (!choice->upstream->balance.two)
            return peer;
        else if (first != NULL)
            return choose_of_two(choice, first, peer);
        else
            first = peer;
    }
    return round_robin_choose(choice);
}

const struct balancer balancer_random = { .name = "random", .choose = choose_at_random };

/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws a peer by weight; with `two` draws a second peer, and takes the better peer. Round robin
 * chooses after too many vain draws, and among the backups. */
#include "upstream/least.h"

static struct peer *choose_at_random(struct choice *choice)
{
    const struct upstream_balance *balance = &choice->upstream->balance;
    least_load *load = balance->two_by_time ? least_time_load : least_conn_load;
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
        else if (!balance->two)
            return peer;
        else if (first != NULL)
            return least_of_two(choice, load, first, peer);
        else
            first = peer;
    }
    return round_robin_choose(choice);
}

const struct balancer balancer_random = { .name = "random", .choose = choose_at_random };

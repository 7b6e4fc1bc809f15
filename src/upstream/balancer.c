/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of balancers; and the smooth weighted round robin, the fallback: a choice adds every
 * peer's weight to the peer's account, takes the peer with the most, and subtracts the total of
 * weights from that account. A weight lessened by failures grows by 1 a choice. */
#include "upstream/balancer.h"

#include "base/compiler.h"

#include <string.h>

const struct balancer *balancer_find(const char *name)
{
    static const struct balancer *const balancers[] = {
#define BALANCER(name) &balancer_##name,
#include "upstream/balancers.def"
#undef BALANCER
    };

    assert(name != NULL);
    for (size_t i = 0; i < countof(balancers); i++)
        if (strcmp(balancers[i]->name, name) == 0)
            return balancers[i];
    return NULL;
}

uint64_t balancer_weight(const struct choice *choice)
{
    uint64_t weight = 0;

    for (unsigned i = choice_first(choice); i < choice_end_of(choice); i++)
        weight += choice->upstream->peers->list[i]->weight;
    return weight;
}

struct peer *balancer_peer_at(const struct choice *choice, uint64_t weight)
{
    const struct peers *peers = choice->upstream->peers;
    unsigned i = choice_first(choice);

    while (weight >= peers->list[i]->weight) {
        weight -= peers->list[i++]->weight;
        assert(i < choice_end_of(choice));
    }
    return peers->list[i];
}

/* Returns the peer's account, bounded. */
static int64_t account_of(const struct peers *peers, const struct peer *peer)
{
    const int64_t most = (int64_t)(2 * PEER_WEIGHT_UNIT * peers->weight);
    int64_t account = PEER_LOAD(peer->state->current_weight);

    return account > most ? most : account < -most ? -most : account;
}

static COLD void regain_weight(const struct peer *peer)
{
    uint32_t lost = PEER_LOAD(peer->state->lost_weight), most = peer->weight * PEER_WEIGHT_UNIT;

    if (lost > most) /* damaged */
        lost = most;
    PEER_STORE(peer->state->lost_weight, lost > PEER_WEIGHT_UNIT ? lost - PEER_WEIGHT_UNIT : 0);
}

static inline void add_to_turn(
    struct round_robin *turn, const struct choice *choice, struct peer *peer)
{
    int64_t weight = peer_weight(choice, peer);
    int64_t account = account_of(choice->upstream->peers, peer) + weight;

    PEER_STORE(peer->state->current_weight, account);
    turn->total += weight;
    if (unlikely(PEER_LOAD(peer->state->lost_weight) != 0))
        regain_weight(peer);
    if (turn->best == NULL || account > turn->most) {
        turn->best = peer;
        turn->most = account;
    }
}

void round_robin_add(struct round_robin *turn, const struct choice *choice, struct peer *peer)
{
    add_to_turn(turn, choice, peer);
}

struct peer *round_robin_take(const struct round_robin *turn)
{
    assert(turn->total >= 0);
    if (turn->best != NULL)
        PEER_STORE(turn->best->state->current_weight, turn->most - turn->total);
    return turn->best;
}

struct peer *round_robin_choose(struct choice *choice)
{
    const struct peers *peers = choice->upstream->peers;
    struct round_robin turn = { .best = NULL };

    for (unsigned i = choice_first(choice); i < choice_end_of(choice); i++)
        if (choice_may_use(choice, peers->list[i]))
            add_to_turn(&turn, choice, peers->list[i]);
    return round_robin_take(&turn);
}

const struct balancer balancer_round_robin = {
    .name = "round_robin",
    .choose = round_robin_choose,
    .takes_backup = true,
    .takes_slow_start = true,
};

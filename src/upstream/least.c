/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares loads for their weights crosswise, so that nothing is divided. The weight of a server
 * that starts slowly grows; failures do not lessen it here. */
#include "upstream/least.h"

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
static bool is_less(struct share a, struct share b)
{
    return (uint64_t)a.load * b.weight < (uint64_t)b.load * a.weight;
}

static bool is_equal(struct share a, struct share b)
{
    return (uint64_t)a.load * b.weight == (uint64_t)b.load * a.weight;
}

/* Lets the peers that have as much to do take turns. */
static struct peer *choose_equal(struct choice *choice, least_load *load, struct share least)
{
    const struct peers *peers = choice->upstream->peers;
    struct round_robin turn = { .best = NULL };

    for (unsigned i = choice_first(choice); i < choice_end_of(choice); i++)
        if (choice_may_use(choice, peers->list[i]) &&
            is_equal(share_of(choice, peers->list[i], load), least))
            round_robin_add(&turn, choice, peers->list[i]);
    return round_robin_take(&turn);
}

struct peer *least_choose(struct choice *choice, least_load *load)
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
        if (best == NULL || is_less(share, least)) {
            best = peer;
            least = share;
            many = false;
        } else if (is_equal(share, least)) {
            many = true;
        }
    }
    if (many) /* other workers may have changed what the peers have to do: then there is none */
        equal = choose_equal(choice, load, least);
    return equal != NULL ? equal : best;
}

struct peer *least_of_two(
    const struct choice *choice, least_load *load, struct peer *a, struct peer *b)
{
    assert(a != b);
    return is_less(share_of(choice, a, load), share_of(choice, b, load)) ? a : b;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of balancers, generated from balancers.def. */
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

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that runs out where a test says. */
#pragma once

#include "base/memory.h"

#include <stdbool.h>

struct scarce {
    struct memory memory;
    unsigned asked;    /* how often memory was asked for */
    unsigned fails_at; /* number of the request that gets none, from 1; 0: each is served */
    bool for_good;     /* no later request gets any either */
    bool failed;
};

/* Makes memory that serves everything. A piece of an arena is a request of its own. */
void scarce_init(struct scarce *scarce);
/* Counts from 1 again, and fails at that request. */
void scarce_restart(struct scarce *scarce, unsigned fails_at);

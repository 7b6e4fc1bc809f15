/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory running out at a chosen request. */
#pragma once

#include "base/memory.h"

#include <stdbool.h>

struct scarce {
    struct memory memory;
    unsigned asked;    /* how often memory was asked for */
    unsigned fails_at; /* number of the request to fail, from 1; 0: none */
    bool for_good;     /* no later request gets any either */
    bool failed;
};

/* Makes memory that serves every request. A piece of an arena is a separate request. */
void scarce_init(struct scarce *scarce);
/* Counts from 1 again, and fails at request `fails_at`. */
void scarce_restart(struct scarce *scarce, unsigned fails_at);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers left behind by a killed master process, until their sessions have ended. Reported at
 * the start and in the status, and ended by a fast shutdown. No record of them is kept: each
 * look reads the lists. */
#pragma once

#include "base/json.h"
#include "pool/layout.h"

struct left_behind {
    const struct pool *pool; /* the other lists are beside its own */
    struct timer look;       /* when to see whether they have ended */
    uint64_t killed_at;      /* when the rest is killed, monotonic ms; 0: no shutdown */
};

/* Logs number and pids, if any, and removes lists of ended workers. */
void left_behind_report(const struct left_behind *left);
/* Ends the workers, by SIGINT and soon by SIGKILL. Until then killed_at is set. */
void left_behind_end(struct left_behind *left);
/* Writes the list for the status. */
void left_behind_write(const struct left_behind *left, struct json *json);

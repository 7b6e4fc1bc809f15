/* SPDX-License-Identifier: BSD-2-Clause */
/* A level that an operator has set for the error logs of all processes of the pool. */
#pragma once

#include "pool/layout.h"

void pool_log_level_init(struct pool *pool);
void pool_log_level_done(struct pool *pool);
/* Sets the level, as LOG_OVERRIDE() for `ms` (0: without an end), or takes it back, as 0. The text
 * is an event, and a line of the master's log by the levels before or after. */
void pool_log_level_set(struct pool *pool, uint32_t override, int64_t ms, const char *text);

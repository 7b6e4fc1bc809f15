/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status for clients, in JSON, whose keys are a promise to users. */
#pragma once

#include "base/json.h"

struct control;
struct pool;

/* Writes the members of a reply to "status". */
void control_status_write(struct control *control, struct json *json);
/* Writes a time in ms since the epoch as "2026-11-21T09:30:00Z". */
void control_status_time(struct json *json, const char *key, int64_t ms);
/* Writes the level of the logs that an operator has set. */
void control_status_log_level(const struct pool *pool, struct json *json);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The death of a worker: its cause, the line that names it, the count. What the worker itself said
 * last is input, from memory that it could write: it decides over words in the log and over which
 * cause is counted, and over nothing else. */
#pragma once

#include "pool/pool.h"

/* Last words of a worker, in its own slot. */
struct death_words {
    uint64_t now, jobs; /* as struct heartbeat */
    uint32_t end;
    uint64_t sessions;
};

/* Names of causes in the status; NULL: not counted there. */
extern const char *const death_names[POOL_DEATHS];

/* Reads a worker's last words, before its slot is released. */
void death_read(const struct pool_worker *worker, struct death_words *words);
/* Logs that the worker's process has exited, with the cause, which it counts and returns. */
enum pool_death death_log(struct pool_worker *worker, int status, const struct death_words *words);

#define DEATH_PLACE_MAX 256

/* Formats where a worker is, or was: "in callback \"data\" of protocol \"echo\"". "": it waits. */
void death_place(
    const struct cycle *cycle, const struct death_words *words, char text[DEATH_PLACE_MAX]);

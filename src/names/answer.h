/* SPDX-License-Identifier: BSD-2-Clause */
/* An answer as it is kept: what was read of a message, without the room that it did not take. It is
 * shared by whoever asked and the cache, and constant. */
#pragma once

#include "base/memory.h"
#include "names/message.h"

struct names_answer {
    unsigned holders;
    uint16_t type;
    uint32_t ttl;      /* seconds, from `since_ms` on */
    uint64_t since_ms; /* monotonic */
    unsigned n;
    size_t size;           /* bytes of all of it */
    const char *canonical; /* lies behind the items */
    const char *text;      /* names of the items, behind that */
    struct message_item items[];
};

/* Copies what was read, for one holder; `valid_ms`, unless it is 0, takes the place of all times to
 * live. SRV are sorted by priority, then the greatest weight. NULL without memory. */
struct names_answer *names_answer_create(
    const struct memory *memory, const struct message *message, uint64_t now_ms, int64_t valid_ms);
struct names_answer *names_answer_share(struct names_answer *answer);
/* Gives it up, and sets the pointer to NULL; the last holder frees it. It may be NULL already. */
void names_answer_drop(const struct memory *memory, struct names_answer **answer);
/* Seconds that are left of a time to live. */
uint32_t names_answer_left(const struct names_answer *answer, uint32_t ttl, uint64_t now_ms);

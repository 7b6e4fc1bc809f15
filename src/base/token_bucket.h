/* SPDX-License-Identifier: BSD-2-Clause */
/* A token bucket: so many events at once, and so many a second in the long run, by the caller's
 * time. Never reads a clock or allocates; a zeroed bucket is full. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct token_bucket {
    uint64_t filled_ms; /* up to when tokens have been added; 0: it was never used */
    uint32_t tokens;
};

struct token_rate {
    uint32_t burst;      /* tokens of a full bucket */
    uint32_t per_second; /* at most 1000 */
};

/* Takes a token; false when there is none. `now_ms` is monotonic. */
bool token_bucket_take(struct token_bucket *bucket, const struct token_rate *rate, uint64_t now_ms);

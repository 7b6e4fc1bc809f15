/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills a bucket by whole tokens, so that many short steps of time add as much as a long step. */
#include "base/token_bucket.h"

#include <assert.h>

bool token_bucket_take(struct token_bucket *bucket, const struct token_rate *rate, uint64_t now_ms)
{
    assert(rate->burst > 0 && rate->per_second > 0 && rate->per_second <= 1000);
    if (bucket->filled_ms == 0) {
        *bucket = (struct token_bucket) { .filled_ms = now_ms, .tokens = rate->burst };
    } else if (now_ms > bucket->filled_ms) {
        uint64_t ms_a_token = 1000 / rate->per_second;
        uint64_t added = (now_ms - bucket->filled_ms) / ms_a_token;

        bucket->filled_ms += added * ms_a_token;
        bucket->tokens =
            added < rate->burst - bucket->tokens ? bucket->tokens + (uint32_t)added : rate->burst;
    }
    assert(bucket->tokens <= rate->burst);
    if (bucket->tokens == 0)
        return false;
    bucket->tokens--;
    return true;
}

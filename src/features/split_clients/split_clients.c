/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the part of a hash by halving, and makes the hash, which is nginx's: the same client gets
 * the same value from both. */
#include "features/split_clients/split_clients.h"

#include <assert.h>
#include <string.h>

uint32_t split_clients_share(unsigned hundredths)
{
    assert(hundredths <= SPLIT_WHOLE);
    return (uint32_t)((uint64_t)hundredths * UINT32_MAX / SPLIT_WHOLE);
}

/* The bytes as a number, the first of them the lowest, on any machine */
static uint32_t load_little(const uint8_t *p, size_t n)
{
    uint32_t word = 0;

    for (size_t i = 0; i < n; i++)
        word |= (uint32_t)p[i] << 8 * i;
    return word;
}

uint32_t split_clients_hash(const char *p, size_t n)
{
    const uint32_t factor = 0x5bd1e995;
    uint32_t hash = (uint32_t)n, word;

    for (; n >= 4; p += 4, n -= 4) {
        word = load_little((const uint8_t *)p, 4) * factor;
        word = (word ^ word >> 24) * factor;
        hash = hash * factor ^ word;
    }
    if (n > 0)
        hash = (hash ^ load_little((const uint8_t *)p, n)) * factor;
    hash = (hash ^ hash >> 13) * factor;
    return hash ^ hash >> 15;
}

const struct map_text *split_clients_find(const struct split_clients *split, uint32_t hash)
{
    unsigned low = 0, high = split->n;

    assert(split->n <= SPLIT_WHOLE);
    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (hash < split->parts[middle].end)
            high = middle;
        else
            low = middle + 1;
    }
    assert(low <= split->n);
    return low < split->n ? &split->parts[low].text : &split->rest;
}

int split_clients_get(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct split_clients *split = variable->arg;
    struct value source;

    assert(split->source != NULL && (split->n == 0 || split->parts != NULL));
    if (template_value(conn, split->source, &source) == -1)
        return -1;
    return map_text_value(
        conn, split_clients_find(split, split_clients_hash(source.p, source.n)), value);
}

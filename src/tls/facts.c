/* SPDX-License-Identifier: BSD-2-Clause */
/* A block of texts about a handshake: see facts.h. */
#include "tls/facts.h"

#include <assert.h>
#include <string.h>

#define FACT_HEAD 3

bool tls_facts_is_text(const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

size_t tls_facts_put(uint8_t *block, size_t n, enum tls_fact fact, const char *text, size_t text_n)
{
    assert(fact < TLS_FACTS && n <= TLS_FACTS_MOST);
    if (text_n > TLS_FACTS_MOST - FACT_HEAD || n > TLS_FACTS_MOST - FACT_HEAD - text_n ||
        text_n == 0 || !tls_facts_is_text((const uint8_t *)text, text_n))
        return n;
    block[n] = (uint8_t)fact;
    block[n + 1] = (uint8_t)(text_n >> 8);
    block[n + 2] = (uint8_t)text_n;
    memcpy(block + n + FACT_HEAD, text, text_n);
    return n + FACT_HEAD + text_n;
}

/* Takes the first text off a block; -1 at the end, and where the rest is no block. */
static int take_fact(fb_bytes *block, fb_bytes *text)
{
    const uint8_t *p = block->p;
    size_t n = block->n >= FACT_HEAD ? (size_t)p[1] << 8 | p[2] : 0;

    if (block->n < FACT_HEAD || n > block->n - FACT_HEAD)
        return -1;
    *text = (fb_bytes) { p + FACT_HEAD, n };
    *block = (fb_bytes) { p + FACT_HEAD + n, block->n - FACT_HEAD - n };
    return p[0];
}

bool tls_facts_check(fb_bytes block)
{
    int last = -1, fact;
    fb_bytes text;

    if (block.n > TLS_FACTS_MOST)
        return false;
    while ((fact = take_fact(&block, &text)) > last) {
        if (fact >= TLS_FACTS || text.n == 0 || !tls_facts_is_text(text.p, text.n))
            return false;
        last = fact;
    }
    return fact == -1 && block.n == 0;
}

fb_bytes tls_facts_find(fb_bytes block, enum tls_fact fact)
{
    fb_bytes text;
    int found;

    assert(fact < TLS_FACTS);
    while ((found = take_fact(&block, &text)) != -1)
        if (found == (int)fact)
            return text;
    return (fb_bytes) { NULL, 0 };
}

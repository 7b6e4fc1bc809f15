/* SPDX-License-Identifier: BSD-2-Clause */
/* Kept answers, in one piece of memory each: items, canonical name, names of the items. An answer
 * lives until its last holder has dropped it. */
#include "names/answer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare_services(const void *a, const void *b)
{
    const struct message_item *one = a, *other = b;

    if (one->priority != other->priority)
        return one->priority < other->priority ? -1 : 1;
    return (other->weight > one->weight) - (other->weight < one->weight);
}

struct names_answer *names_answer_create(
    const struct memory *memory, const struct message *message, uint64_t now_ms, int64_t valid_ms)
{
    size_t items = message->n * sizeof(message->items[0]), name = strlen(message->canonical) + 1;
    size_t size = sizeof(struct names_answer) + items + name + message->text_n;
    struct names_answer *answer = memory_alloc(memory, size);
    char *text;

    assert(message->n <= MESSAGE_ITEMS && message->text_n <= MESSAGE_TEXT);
    if (answer == NULL)
        return NULL;
    text = (char *)answer + sizeof(*answer) + items;
    *answer = (struct names_answer) {
        .holders = 1,
        .type = message->type,
        .ttl = message->ttl,
        .since_ms = now_ms,
        .n = message->n,
        .size = size,
        .canonical = text,
        .text = text + name,
    };
    memcpy(answer->items, message->items, items);
    memcpy(text, message->canonical, name);
    memcpy(text + name, message->text, message->text_n);
    if (valid_ms > 0) {
        answer->ttl = (uint32_t)(valid_ms < 1000 ? 1 : valid_ms / 1000);
        for (unsigned i = 0; i < answer->n; i++)
            answer->items[i].ttl = answer->ttl;
    }
    if (answer->type == MESSAGE_SRV)
        qsort(answer->items, answer->n, sizeof(answer->items[0]), compare_services);
    return answer;
}

struct names_answer *names_answer_share(struct names_answer *answer)
{
    assert(answer->holders > 0);
    answer->holders++;
    return answer;
}

void names_answer_drop(const struct memory *memory, struct names_answer **answer)
{
    if (*answer == NULL)
        return;
    assert((*answer)->holders > 0);
    if (--(*answer)->holders == 0)
        memory_release(memory, *answer);
    *answer = NULL;
}

uint32_t names_answer_left(const struct names_answer *answer, uint32_t ttl, uint64_t now_ms)
{
    uint64_t passed = (now_ms - answer->since_ms) / 1000;

    assert(now_ms >= answer->since_ms);
    return passed < ttl ? (uint32_t)(ttl - passed) : 0;
}

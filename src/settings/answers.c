/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of entries behind one another, which only grows. Look-ups start at the first entry: a
 * configuration asks a few questions. */
#include "settings/answers.h"

#include "os/memory.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Room for ten users in all the groups that a user may be in; pages that stay untouched cost
 * nothing. */
#define ANSWERS_MAX (4u << 20)

struct entry {
    uint32_t kind;
    uint32_t question_n; /* with its NUL */
    uint32_t answer_n;
};

struct answers {
    uint32_t used; /* bytes */
    uint8_t bytes[ANSWERS_MAX - sizeof(uint32_t)];
};

struct answers *answers_create(void)
{
    return os_memory_reserve_shared(sizeof(struct answers));
}

void answers_keep_private(struct answers *answers)
{
    os_inherited_never(answers, sizeof(*answers));
}

void answers_destroy(struct answers **answers)
{
    if (*answers != NULL)
        munmap(*answers, sizeof(**answers));
    *answers = NULL;
}

bool answers_add(struct answers *answers, enum answers_kind kind, const char *question,
    const void *answer, size_t n)
{
    struct entry entry = { kind, (uint32_t)strlen(question) + 1, (uint32_t)n };
    size_t used = answers->used;

    assert(n < ANSWERS_MAX);
    if (used > sizeof(answers->bytes) ||
        sizeof(answers->bytes) - used < sizeof(entry) + entry.question_n + n)
        return false;
    memcpy(answers->bytes + used, &entry, sizeof(entry));
    memcpy(answers->bytes + used + sizeof(entry), question, entry.question_n);
    if (n > 0)
        memcpy(answers->bytes + used + sizeof(entry) + entry.question_n, answer, n);
    answers->used = (uint32_t)(used + sizeof(entry) + entry.question_n + n);
    return true;
}

long answers_find(const struct answers *answers, enum answers_kind kind, const char *question,
    void *answer, size_t max)
{
    size_t used = answers->used, question_n = strlen(question) + 1;
    const uint8_t *at = answers->bytes, *end;
    struct entry entry;

    if (used > sizeof(answers->bytes))
        return -1;
    for (end = at + used; (size_t)(end - at) >= sizeof(entry); at += entry.answer_n) {
        memcpy(&entry, at, sizeof(entry));
        at += sizeof(entry);
        if ((size_t)(end - at) < entry.question_n ||
            (size_t)(end - at) - entry.question_n < entry.answer_n)
            return -1;
        at += entry.question_n;
        if (entry.kind == kind && entry.question_n == question_n && entry.answer_n <= max &&
            memcmp(at - question_n, question, question_n) == 0) {
            memcpy(answer, at, entry.answer_n);
            return (long)entry.answer_n;
        }
    }
    return -1;
}

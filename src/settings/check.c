/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the texts of the progress before the flag is set. Answers are a list of entries behind one
 * another, which only grows, and is searched from its first entry. */
#include "settings/check.h"

#include "conf/conf.h"
#include "os/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Room for ten users in all possible groups; untouched pages cost nothing. */
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

void check_progress_enter(struct check_progress *progress, const struct conf_word *word,
    const char *when, const char *who_format, ...)
{
    va_list args;

    if (progress == NULL)
        return;
    assert(!progress->foreign && !progress->done);
    va_start(args, who_format);
    vsnprintf(progress->who, sizeof(progress->who), who_format, args);
    va_end(args);
    snprintf(progress->when, sizeof(progress->when), "%s", when);
    progress->where[0] = '\0';
    if (word != NULL && word->file != NULL)
        snprintf(progress->where, sizeof(progress->where), " in %s:%u:%u", word->file->name,
            word->line, word->column);
    progress->foreign = true;
}

void check_progress_leave(struct check_progress *progress)
{
    if (progress != NULL)
        progress->foreign = false;
}

struct answers *check_answers_create(void)
{
    return os_memory_reserve_shared(sizeof(struct answers));
}

void check_answers_keep_private(struct answers *answers)
{
    os_inherited_never(answers, sizeof(*answers));
}

void check_answers_destroy(struct answers **answers)
{
    if (*answers != NULL)
        munmap(*answers, sizeof(**answers));
    *answers = NULL;
}

bool check_answers_add(struct answers *answers, enum answers_kind kind, const char *question,
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

long check_answers_find(const struct answers *answers, enum answers_kind kind, const char *question,
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

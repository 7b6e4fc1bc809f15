/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a configuration check shares with its parent process: its progress, by the running
 * module or protocol; and answers of name services, which may hang: the child asks, and the next
 * reading finds the answers here. The child has written this memory: lengths are never trusted. */
#pragma once

#include "base/compiler.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct conf_word;

struct check_progress {
    bool done;                 /* the configuration was read to its end, with or without mistakes */
    bool foreign;              /* code of a module or protocol runs, which the texts below name */
    char who[PATH_MAX + 16];   /* module "/usr/lib/x.so" */
    char when[64];             /* while it was loaded */
    char where[PATH_MAX + 64]; /* " in FILE:LINE:COLUMN", or "" */
};

/* Note that code of a module or protocol runs, and has returned. Both pointers may be NULL. */
void check_progress_enter(struct check_progress *progress, const struct conf_word *word,
    const char *when, const char *who_format, ...) PRINTF_FORMAT(4, 5);
void check_progress_leave(struct check_progress *progress);
struct answers;

enum answers_kind {
    ANSWERS_USER,
    ANSWERS_GROUP,
    ANSWERS_LISTEN,
    ANSWERS_HOST,
    ANSWERS_TARGET,
    ANSWERS_CLIENTS,
};

/* Makes memory that children share until check_answers_keep_private(); NULL without memory. */
struct answers *check_answers_create(void);
/* Children forked from now on do not share the memory. */
void check_answers_keep_private(struct answers *answers);
void check_answers_destroy(struct answers **answers);
/* Notes the answer to a question; false where there is no room. */
bool check_answers_add(struct answers *answers, enum answers_kind kind, const char *question,
    const void *answer, size_t n);
/* Copies a noted answer of at most `max` bytes; returns the length, or -1: no answer. */
long check_answers_find(const struct answers *answers, enum answers_kind kind, const char *question,
    void *answer, size_t max);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the system's name services (users, groups, hosts), in memory shared by two processes.
 * The process that checks a configuration asks the services, which may hang, and notes the answers;
 * the following reading finds the answers here and asks no service. The other process has written
 * this memory: lengths are never trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct answers;

enum answers_kind {
    ANSWERS_USER,
    ANSWERS_LISTEN,
    ANSWERS_HOST,
    ANSWERS_TARGET,
    ANSWERS_CLIENTS,
};

/* Makes memory that children of fork() share until answers_keep_private(); NULL without memory. */
struct answers *answers_create(void);
/* Children forked from now on do not share the memory. */
void answers_keep_private(struct answers *answers);
void answers_destroy(struct answers **answers);

/* Notes the answer to a question; false where there is no room. */
bool answers_add(struct answers *answers, enum answers_kind kind, const char *question,
    const void *answer, size_t n);
/* Copies a noted answer of at most `max` bytes; returns the length, or -1: no answer. */
long answers_find(const struct answers *answers, enum answers_kind kind, const char *question,
    void *answer, size_t max);

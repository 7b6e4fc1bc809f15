/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers of the other master process of an upgrade: what it says of them may be anything. */
#pragma once

#include "pool/pool.h"

/* Whether the incarnation, which may be invented, is one of theirs. */
static inline bool pool_others_have(const struct pool *pool, uint32_t incarnation)
{
    return slot_half_of(incarnation) != pool->shared->half;
}
/* A worker asks for them. Returns the rule that it breaks, or NULL. */
const char *pool_others_want(struct pool_worker *worker);
/* The other process has told its workers: `others`, n of them. */
void pool_others_came(struct pool *pool, const uint32_t *others, unsigned n);
/* The other process has answered: `fd` is that inbox, which stays the caller's; -1: that worker has
 * gone, or, if it was `found`, descriptors are short. */
void pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd);
/* A worker of the other process has gone. */
void pool_others_note_gone(struct pool *pool, uint32_t incarnation);
/* Every worker has, because the other process has. */
void pool_others_end(struct pool *pool);
/* The other process asks for our workers: lists them, and returns how many; or for the inbox of one
 * of them, as pool_outbox_find_inbox() returns it. */
unsigned pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX]);
int pool_others_find_inbox(struct pool *pool, uint32_t incarnation);

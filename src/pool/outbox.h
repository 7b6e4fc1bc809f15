/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to workers, beside those without an argument: each is sent at once, or when the worker's
 * channel has room. */
#pragma once

#include "pool/layout.h"

/* Operations of the channels' ends. */
bool pool_outbox_send_more(struct channel_end *end);
void pool_outbox_failed(struct channel_end *end, int error);
/* A socket that has taken the place of a listener's, which had this descriptor. It is lost when the
 * channel is full: the worker finds its own listener broken, and says so again. */
void pool_outbox_listener(struct pool_worker *worker, int fd);
/* The log files of its generation, which were opened again; it does the same with its own. */
void pool_outbox_logs(struct pool_worker *worker);
/* The inbox of the worker that is this incarnation, or that it has gone. False when the worker has
 * asked too often without reading the replies. */
bool pool_outbox_want_inbox(struct pool_worker *worker, uint32_t incarnation);
/* Tells all others that the worker, whose inbox was asked for, has gone; kills those that have not
 * read of too many. */
void pool_outbox_note_gone(const struct pool_worker *gone);

/* The other master process of an upgrade: anything that it says may be wrong. */

/* A worker asks for the other process's workers. Returns the rule that it breaks, or NULL. */
const char *pool_others_want(struct pool_worker *worker);
/* Takes the list of its workers, n of them. */
void pool_others_came(struct pool *pool, const uint32_t *others, unsigned n);
/* Takes an inbox, which stays the caller's; -1: that worker has gone, or, if it was `found`,
 * descriptors are short. */
void pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd);
/* A worker of the other process has gone. */
void pool_others_note_gone(struct pool *pool, uint32_t incarnation);
/* Every worker has, because the other process has. */
void pool_others_end(struct pool *pool);
/* Lists our workers for the other process, and returns how many. */
unsigned pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX]);
/* Returns the sending end of the inbox of one of our workers; -1: there is no such worker, or no
 * descriptor is left. */
int pool_others_find_inbox(struct pool *pool, uint32_t incarnation);

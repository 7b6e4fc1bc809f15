/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to workers, beside those without an argument: each is sent at once, or when the worker's
 * channel has room. */
#pragma once

#include "pool/pool.h"

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
/* Does the same in a moment. */
bool pool_outbox_want_inbox_later(struct pool_worker *worker, uint32_t incarnation);
/* Tells all others that the worker, whose inbox was asked for, has gone; kills those that have not
 * read of too many. */
void pool_outbox_note_gone(const struct pool_worker *gone);
/* Closes the worker's inbox, if there is one: the next that asks for it gets a new one. */
void pool_outbox_drop_inbox(struct pool_worker *worker);

/* Sends a worker the inbox of another incarnation, or, -1, that it has gone; false when it has to
 * be tried again. */
bool pool_outbox_give_inbox(struct pool_worker *worker, uint32_t incarnation, int inbox);
/* Returns the sending end of a worker's inbox, which is made unless there is one; -1: there is no
 * such worker, or no descriptor is left. */
int pool_outbox_find_inbox(struct pool *pool, uint32_t incarnation);
/* Notes an incarnation that has gone, or what else MESSAGE_PEER_GONE may say, for all workers but
 * `except`. */
void pool_outbox_add_gone(struct pool *pool, uint32_t gone, const struct pool_worker *except);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to workers with an argument: sent at once, or when the channel has room. */
#pragma once

#include "pool/layout.h"

/* Operations of the channels' ends. */
bool pool_outbox_send_more(struct channel_end *end);
void pool_outbox_failed(struct channel_end *end, int error);
/* Sends a replacement socket for a listener with this descriptor, ignored by a worker without the
 * listener. Lost when the channel is full: the worker reports its broken listener again. */
void pool_outbox_listener(struct pool_worker *worker, int fd);
/* Has a worker write its sessions into a pipe, of which the caller keeps the descriptor; false: the
 * worker does not serve, or does not read its messages. */
bool pool_outbox_sessions(struct pool_worker *worker, int pipe);
/* Sends reopened log files; access logs are reopened by the worker. */
void pool_outbox_logs(struct pool_worker *worker);
/* Takes the report of a broken log. For a connection by TCP a new one is sent; where that fails, or
 * too many were sent, the process reports its log again. */
void pool_outbox_broken_log(struct pool_worker *worker, uint32_t log);
/* Sends the inbox of an incarnation, or its end; false after too many unread replies. */
bool pool_outbox_want_inbox(struct pool_worker *worker, uint32_t incarnation);
/* Tells all workers of a worker's end; kills workers that leave too many unread. */
void pool_outbox_note_gone(const struct pool_worker *gone);

/* The other master process of an upgrade. Messages from there may be wrong. */

/* A worker asks for workers of the other process. Returns the broken rule, or NULL. */
const char *pool_others_want(struct pool_worker *worker);
/* Takes the list of workers. */
void pool_others_came(struct pool *pool, const uint32_t *others, unsigned n);
/* Takes a copy of an inbox; -1: the worker has ended, or, if `found`, descriptors are short. */
void pool_others_inbox_came(
    struct pool *pool, uint32_t incarnation, uint32_t asker, bool found, int fd);
/* A worker of the other process has ended, or all have. */
void pool_others_note_gone(struct pool *pool, uint32_t incarnation);
void pool_others_end(struct pool *pool);
/* Lists our workers for the other process; returns the number. */
unsigned pool_others_list_own(struct pool *pool, uint32_t own[SLOT_MAX]);
/* Returns the sending end of the inbox of one of our workers; -1: no worker, or no descriptors. */
int pool_others_find_inbox(struct pool *pool, uint32_t incarnation);

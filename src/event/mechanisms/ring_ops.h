/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of a ring's watches. */
#pragma once

#include "event/mechanisms/ring.h"

/* Keeps the list of watches that have something to report: called when input, or who wants it,
 * has changed. */
void ring_update_unread(struct ring *ring, struct ring_watch *watch);
/* Cancels the waits of plain watches, which the next call of ring_prepare() gives anew. */
void ring_renew(struct ring *ring);
/* Detaches the watch from its source, which is gone or watched no more. */
void ring_forget(struct ring *ring, struct source *source);
/* Prepares the operations that follow from what has changed. */
void ring_prepare(struct ring *ring);
/* Takes what the kernel has returned, and reports it; returns how many operations. */
unsigned ring_reap(struct ring *ring);
/* Waits until the kernel has returned all operations. */
void ring_drain(struct ring *ring);

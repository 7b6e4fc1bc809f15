/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of a ring's watches. */
#pragma once

#include "event/mechanisms/ring.h"

/* Keeps the list of watches with reports due, after a change of input or of the wish. */
void ring_update_unread(struct ring *ring, struct ring_watch *watch);
/* Cancels the waits of plain watches, which the next call of ring_prepare() gives anew. */
void ring_renew(struct ring *ring);
/* Detaches the watch from a source gone or no longer watched. */
void ring_forget(struct ring *ring, struct source *source);
/* Prepares the operations needed after changes. */
void ring_prepare(struct ring *ring);
/* Takes and reports the kernel's results; returns the number of operations. */
unsigned ring_reap(struct ring *ring);
/* Waits until the kernel has returned all operations. */
void ring_drain(struct ring *ring);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for the input and the output of a ring's watches. */
#pragma once

#include "event/mechanisms/ring.h"

/* Makes n buffers and gives all to the kernel; -1 with errno. */
int ring_buffers_init(struct ring *ring, unsigned n);
void ring_buffers_done(struct ring *ring);
/* Notes a buffer filled by the kernel, and returns the memory. */
uint8_t *ring_buffer_taken(struct ring *ring, int buffer);
/* Drops a use of a buffer; the kernel gets an unused buffer back. */
void ring_buffer_release(struct ring *ring, int buffer);
/* Takes back the buffers lent since the last wait. */
void ring_buffers_take_back(struct ring *ring);

/* Drops a watch's input, and its output. */
void ring_input_drop(struct ring *ring, struct ring_watch *watch);
void ring_output_drop(struct ring *ring, struct ring_watch *watch);
/* Takes input, at most as much as *span has room for: lent in its buffer, or copied. */
size_t ring_input_take(struct ring *ring, struct ring_watch *watch, struct io_span *span);
/* Copies unread input out of the buffer, where memory allows. */
void ring_input_keep(struct ring *ring, struct ring_watch *watch);
/* Adds to output that the kernel has not begun with; returns the number of bytes: 0 with errno
 * (ENOMEM), or where there is no room now. */
size_t ring_output_add(
    struct ring *ring, struct ring_watch *watch, const struct iovec *pieces, int n);

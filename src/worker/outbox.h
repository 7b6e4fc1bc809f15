/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages to the master. A worker keeps to the channel's rules whatever its clients do: no more
 * messages than the master takes for an attack, and none lost that the master waits for. */
#pragma once

#include "event/timer.h"
#include "process/channel.h"

struct fb_worker;

struct worker_outbox {
    uint32_t unsent; /* a bit for each kind that waits: the channel is full, or it is too soon */
    uint64_t limited_ms; /* when a kind was sent last that may come often */
    struct timer retry;
};

/* Sends a message, now or soon; one that waits already is the same. Nothing happens without a
 * master. */
void worker_send(struct fb_worker *worker, enum channel_message_kind kind);
/* Sends a message with an argument; false when the channel is full. */
bool worker_try_send(struct fb_worker *worker, enum channel_message_kind kind, uint32_t argument);
/* Sends what still waits, as far as there is room, before the channel is closed. */
void worker_send_rest(struct fb_worker *worker);

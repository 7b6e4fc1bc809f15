/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: what the master's messages and signals tell a worker to do, and what the worker tells
 * the master. Commands are taken between turns, never within one, and a signal's flag is cleared
 * before it is acted on. */
#pragma once

#include "process/channel.h"

struct fb_worker;

/* Watches the channel to the master, where there is one; -1 after an emerg line. */
int fb_worker_open_channel(struct fb_worker *worker);
/* Sends a message to the master; nothing happens without one. */
void fb_worker_tell(struct fb_worker *worker, enum fb_message_kind kind);
/* Sends a message with an argument and a descriptor (or -1), which stays the caller's. */
void fb_worker_tell_with(
    struct fb_worker *worker, enum fb_message_kind kind, uint32_t argument, int fd);
/* Does what signals have asked for since the last call. */
void fb_worker_take_orders(struct fb_worker *worker);

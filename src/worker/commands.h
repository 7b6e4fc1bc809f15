/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: what the master's messages and signals ask of a worker, and the messages that the
 * worker sends back. Commands are taken between turns, never within one, and a signal's flag is
 * cleared before it is acted on. */
#pragma once

#include "process/channel.h"

struct fb_worker;

/* Watches the channel to the master, where there is one; -1 after an emerg line. */
int worker_open_channel(struct fb_worker *worker);
/* Sends a message to the master; nothing happens without one. */
void worker_send(struct fb_worker *worker, enum channel_message_kind kind);
/* Sends a message with an argument and a descriptor (or -1), which stays the caller's. */
void worker_send_with(
    struct fb_worker *worker, enum channel_message_kind kind, uint32_t argument, int fd);
/* Does what signals have asked for since the last call; called when signals_pending() says so. */
void worker_take_commands(struct fb_worker *worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between connections, of one worker or of two.
 *
 * A message is answered once: handled, declined, or, when the receiving worker has gone, unknown.
 * It waits in the queue of the receiver's worker (peers.h), or in the local queue when that is this
 * one. Nothing of this exists until a connection has a reference. */
#pragma once

#include <forkbeard/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fb_conn;
struct fb_worker;

/* Opens the queues and the inbox, unless they are open; false, after a crit line, when it fails. */
bool messages_open(struct fb_worker *worker);
/* Closes them; messages that wait are freed unsent. */
void messages_done(struct fb_worker *worker);
/* Sends a message as fb_send_message() says; returns its number, or 0. */
uint64_t messages_send(
    struct fb_worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n);

/* Asserts what holds of open queues between two turns. */
void messages_check(const struct fb_worker *worker);

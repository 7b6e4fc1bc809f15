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

struct channel_message;
struct fb_conn;
struct fb_worker;

/* Opens the queues, unless they are open; false when it fails. */
bool messages_open(struct fb_worker *worker);
/* Receives from now on what other workers send to the socket that the master has made for it, of
 * which it takes the descriptor (inbox.c). */
void inbox_open(struct fb_worker *worker, struct channel_message *message);
/* Closes both; messages that wait are freed unsent. */
void messages_done(struct fb_worker *worker);
/* Sends a message as fb_send_message() says; returns its number, or 0. */
uint64_t messages_send(
    struct fb_worker *worker, struct fb_conn *from, fb_ref to, const void *p, size_t n);

/* Asserts what holds of open queues between two turns. */
void messages_check(const struct fb_worker *worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Peers: the other workers that this one has sent messages to, with a queue for each and the
 * sending end of its inbox, which the master hands over on request. */
#pragma once

#include <stdint.h>

struct channel_message;
struct worker;

/* The master has handed over the inbox of a worker: what waits in its queue is sent. Takes the
 * descriptor. */
void peers_open(struct worker *worker, struct channel_message *message);
/* The worker of that incarnation has gone: what it has not answered is answered with "unknown". */
void peers_gone(struct worker *worker, uint32_t incarnation);
/* Workers of another master process have gone, all whose serials are until this one, of the width
 * that they have in an incarnation. */
void peers_others_gone(struct worker *worker, uint32_t serial);
/* The master has gone: no inbox that was asked for will come any more. */
void peers_master_gone(struct worker *worker);

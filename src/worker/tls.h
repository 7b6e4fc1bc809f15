/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS in a worker: the layer on connections, and the link to the engine that shakes hands, in a
 * keeper, or in this process where there is no master. Handshakes begin at stream->tls_link. */
#pragma once

#include "channel/channel.h"
#include "tls/engine.h"
#include "tls/file_watch.h"

struct worker;

struct worker_tls {
    struct tls_files files;      /* files of an engine in this process */
    struct tls_engine *engine;   /* NULL: a keeper has it */
    struct tls_file_watch watch; /* watch of the engine's files */
    struct source *changes;      /* of the watch; or NULL */
    struct timer daily;          /* when the end of certificates is told again */
    uint32_t link_n;             /* number of the latest link to the keeper; 0: none yet */
    uint32_t lost;               /* number of a lost link that the master is to hear of; 0: none */
};

/* Makes what the configuration's profiles need; -1 after an emerg line. */
int worker_tls_open(struct worker *worker);
/* No connection is open any more. */
void worker_tls_close(struct worker *worker);
/* Takes the socket to a keeper out of the master's message, if one came. */
void worker_tls_connect(struct worker *worker, struct channel_message *message);
/* Tells the master of a lost link, if any; false: the channel is full. */
bool worker_tls_send_lost(struct worker *worker);

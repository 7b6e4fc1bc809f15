/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between workers of the two master processes of an upgrade: each process asks for the
 * other's workers and inboxes, and reports gone workers. Messages go directly from worker to
 * worker. Processes with different forms of messages exchange none. */
#pragma once

#include "upgrade/link.h"

#include <stdbool.h>
#include <stdint.h>

struct upgrade;

struct upgrade_inboxes {
    int64_t form; /* the other process's message form; 0: unknown, or none */
    bool refused; /* the log says that forms differ */
};

/* Handles a message about workers, and takes its descriptor; false for any other message. */
bool upgrade_inboxes_handle(struct upgrade *upgrade, struct json_value message, int fd);
/* Forgets all workers of the other process after the process's end. */
void upgrade_inboxes_end(struct upgrade *upgrade);
/* Asks the other process for the inbox of a worker, for our worker `asker`, both incarnations; or
 * for all its workers (POOL_ASK_ALL). Returns -1 with errno: EAGAIN when the link is full, ENOTCONN
 * without a process to exchange messages with. */
int upgrade_ask_inboxes(struct upgrade *upgrade, uint32_t incarnation, uint32_t asker);
/* Reports a gone worker of ours. */
void upgrade_tell_gone(struct upgrade *upgrade, uint32_t incarnation);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages between workers of the two master processes of an upgrade: each process asks the other
 * for its workers and their inboxes, and tells of those that have gone. The messages themselves go
 * from worker to worker. Where the two have other forms of messages, there are none. */
#pragma once

#include "upgrade/link.h"

#include <stdbool.h>
#include <stdint.h>

struct upgrade;

struct upgrade_inboxes {
    int64_t form; /* the other process's form of messages; 0: not told, or none */
    bool refused; /* the log says that it is not ours */
};

/* Tells the other process the form of our messages, as a member of a message. */
void upgrade_inboxes_write(struct json *json);
/* Handles a message that is about workers, and takes its descriptor; false if it is not. */
bool upgrade_inboxes_handle(struct upgrade *upgrade, const struct upgrade_message *message);
/* The other process has gone, and its workers with it as far as ours are concerned. */
void upgrade_inboxes_end(struct upgrade *upgrade);

/* Asks the other process for its workers, or for the inbox of one, which is for our worker `asker`,
 * both incarnations. Returns -1 with errno: EAGAIN when it does not read now, ENOTCONN when there
 * is no other process, or none with which messages are exchanged. */
int upgrade_ask_others(struct upgrade *upgrade);
int upgrade_ask_inbox(struct upgrade *upgrade, uint32_t incarnation, uint32_t asker);
/* Tells the other process that a worker of ours has gone. */
void upgrade_tell_gone(struct upgrade *upgrade, uint32_t incarnation);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening sockets of the two master processes of an upgrade. Both processes exchange lists of
 * inodes, which are equal for shared sockets.
 *
 * A socket with reuseport is a queue of its own, and clients in the queue are lost when the last
 * process closes the socket. A process with more workers has more queues, and gives the surplus to
 * the other process on its end; workers started next serve them. */
#pragma once

#include "base/log.h"
#include "net/listener.h"
#include "upgrade/link.h"

#include <stdbool.h>
#include <stdint.h>

struct upgrade;

struct upgrade_sockets {
    uint64_t *inodes;
    unsigned n;
};

/* Writes the member "sockets"; `listeners` may be NULL. */
void upgrade_sockets_write(struct json *json, const struct listeners *listeners);
/* Replaces the list; a lack of memory shortens it: at worst a path in use is removed. */
void upgrade_sockets_read(struct upgrade_sockets *sockets, struct json_value list);
void upgrade_sockets_free(struct upgrade_sockets *sockets);
/* Whether the socket is in the list. */
bool upgrade_sockets_have(const struct upgrade_sockets *sockets, int fd);
/* Sends the queues of our listeners that are missing in the list. */
void upgrade_sockets_give(struct upgrade *upgrade);
/* Takes a socket of a listener without it, or closes the socket. */
void upgrade_sockets_take(struct upgrade *upgrade, int fd);

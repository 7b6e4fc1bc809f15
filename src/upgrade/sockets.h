/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening sockets of the two master processes of an upgrade. Each tells the other which
 * ones it has, by their inodes, which are the same in both.
 *
 * A socket with reuseport is a queue of its own, and clients that wait in it are lost when the
 * last process closes it. One of the two may have queues that the other lacks, because it has
 * more workers: when it ends it gives them to the other, whose next workers serve them. */
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "net/listener.h"
#include "upgrade/link.h"

#include <stdbool.h>
#include <stdint.h>

struct upgrade_sockets {
    uint64_t *inodes;
    unsigned n;
};

/* Writes the member "sockets"; `listeners` may be NULL. */
void upgrade_sockets_write(struct json *json, const struct listeners *listeners);
/* Replaces the list by the other process's. Without memory it is shorter: at worst a path is
 * removed that is still listened on. */
void upgrade_sockets_read(struct upgrade_sockets *sockets, struct json_value list);
void upgrade_sockets_free(struct upgrade_sockets *sockets);
/* Whether the other process has the socket too. */
bool upgrade_sockets_have(const struct upgrade_sockets *sockets, int fd);

/* Gives the other process those queues of our listeners that it lacks. */
void upgrade_sockets_give(const struct upgrade_sockets *sockets, const struct listeners *listeners,
    struct upgrade_link *link, pid_t other, struct log *log);
/* Adds the socket to the listener of its address, unless one of them has it already; whether the
 * listener has it from now on. */
bool upgrade_sockets_adopt(struct listeners *listeners, const struct address *address, int fd);

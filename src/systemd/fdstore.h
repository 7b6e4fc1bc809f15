/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets of the service manager: passed to a start by LISTEN_PID, LISTEN_FDS and
 * LISTEN_FDNAMES, as in sd_listen_fds(3), and our copies in the manager's store, which keeps
 * them over a restart, so that clients wait in the queues. The manager's own sockets are never
 * stored. */
#pragma once

#include "base/log.h"
#include "net/adopted.h"

#include <sys/types.h>

/* Name of a socket in the store, perhaps with a suffix for the address. */
#define FDSTORE_NAME "forkbeard"
#define FDSTORE_NAME_MAX 32

/* Adds the passed sockets, if any, and removes the variables; -1 after an emerg line. `self` is our
 * pid. To be called before any descriptor is opened. */
int fdstore_adopt(struct adopted *adopted, pid_t self, struct log *log);
/* Stores the sockets of serving listeners that are not stored yet. */
void fdstore_add(struct listeners *listeners, struct log *log);
/* Removes the stored copies of a listener dropped by the configuration. */
void fdstore_drop(struct listener *listener, struct log *log);
/* Removes stored copies without a listener, before adopted_finish(); `adopted` may be NULL. */
void fdstore_drop_unclaimed(
    struct adopted *adopted, const struct listeners *serving, struct log *log);

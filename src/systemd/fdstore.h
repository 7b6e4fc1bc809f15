/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's store of descriptors. The manager keeps copies of the listening sockets
 * while the daemon is restarted, so that clients wait in the queues instead of being refused.
 * Sockets opened by the manager are never stored. */
#pragma once

#include "net/adopted.h"

/* Name of a socket in the store, perhaps with a suffix for the address. */
#define FDSTORE_NAME "forkbeard"
#define FDSTORE_NAME_MAX 32

/* Whether a descriptor passed under this name was stored by us. */
bool fdstore_is_name(const char *name);

/* Stores the sockets of serving listeners that are not stored yet. */
void fdstore_add(struct listeners *listeners, struct log *log);
/* Removes the stored copies of a listener dropped by the configuration. */
void fdstore_drop(struct listener *listener, struct log *log);
/* Removes the stored copies taken over by no listener. To be called before adopted_finish().
 * `adopted` may be NULL. */
void fdstore_drop_unclaimed(
    struct adopted *adopted, const struct listeners *serving, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's store of descriptors. It keeps copies of the listening sockets while the
 * daemon is restarted, so that clients wait in their queues instead of being refused. Sockets that
 * the manager has opened itself are never stored. */
#pragma once

#include "net/adopted.h"

/* The name of a socket in the store: this, or this with a suffix for the address. */
#define FDSTORE_NAME "forkbeard"
#define FDSTORE_NAME_MAX 32

/* Whether a descriptor that is passed under this name was stored by us. */
bool fdstore_is_name(const char *name);

/* Stores the sockets of these listeners, which serve, as far as they are not stored yet. */
void fdstore_add(struct listeners *listeners, struct log *log);
/* Removes the stored copies of a listener that the configuration does not have any more. */
void fdstore_drop(struct listener *listener, struct log *log);
/* Removes the stored copies that no listener has taken over. To be called before adopted_finish().
 * `adopted` may be NULL. */
void fdstore_drop_unclaimed(
    struct adopted *adopted, const struct listeners *serving, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The listeners of a configuration beside the configuration in force: opened, committed, taken
 * back, or retired. A socket of both is never closed. Never runs in a worker. */
#pragma once

#include "net/adopted.h"
#include "settings/cycle.h"

/* Counts unix sockets with lost paths; *in_use: paths where another process listens. */
unsigned listeners_count_lost(const struct cycle *cycle, unsigned *in_use);
/* Notes the lost paths for listeners_open() to bind again; none unless `bind_again`. */
void listeners_note_lost(struct cycle *in_force, bool bind_again);
/* Whether listeners_open() would bind a new internet address, perhaps still in use. */
bool listeners_must_bind(
    const struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted);
/* Binds all addresses, with `slots` sockets for reuseport, and takes over open sockets of the
 * configuration in force (NULL: none) and of `adopted`. Returns -1 with all closed again, after an
 * emerg line for each failure, with the place in the configuration. */
int listeners_open(struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted,
    unsigned slots, struct log *log);
/* Makes all sockets listen; -1 after an emerg line, with some listening. */
int listeners_commit(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log);
/* Undoes listeners_open(). */
void listeners_abandon(
    struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted);
/* After a failed commit: abandons all, and restores the options of the configuration in force. */
void listeners_restore(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log);

/* Whether another master process listens on this socket: then the path stays. */
struct listeners_sharing {
    bool (*is_shared)(void *host, const struct listener *listener);
    void *host; /* given to the operation */
};

/* Hands the old configuration's sockets to the new one, and closes dropped listeners. */
void listeners_retire(const struct cycle *old, const struct cycle *new,
    const struct listeners_sharing *sharing, struct log *log);
/* Closes all listeners of a configuration, and unlinks paths without another master. */
void listeners_close(
    const struct cycle *cycle, const struct listeners_sharing *sharing, struct log *log);

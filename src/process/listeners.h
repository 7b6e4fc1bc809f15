/* SPDX-License-Identifier: BSD-2-Clause */
/* The listeners of a configuration beside those of the one that is in force: opened, committed,
 * taken back, or retired when they were replaced. A socket that both have is never closed on the
 * way. Only a master and a single process open listeners. */
#pragma once

#include "net/adopted.h"
#include "settings/cycle.h"

/* How many unix sockets of the configuration have lost their paths; and how many of these another
 * process listens on. */
unsigned listeners_count_lost(const struct cycle *cycle, unsigned *in_use);
/* Notes which sockets have, so that listeners_open() binds their paths again; none of them unless
 * `bind_again` is set. */
void listeners_note_lost(struct cycle *in_force, bool bind_again);
/* Whether listeners_open() would bind an address of an internet family that is not open: others may
 * hold that still. A unix path that was given up is free. */
bool listeners_must_bind(
    const struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted);
/* Binds what the configuration listens on, with `slots` sockets where it says reuseport, taking
 * over what the configuration in force (NULL: none) or `adopted` has open. Returns -1 after an
 * emerg line of each that could not be opened, which names its place in the configuration, with
 * what was opened closed again. */
int listeners_open(struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted,
    unsigned slots, struct log *log);
/* Makes all of them listen; -1 after an emerg line, with some listening. */
int listeners_commit(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log);
/* Closes what listeners_open() has opened. */
void listeners_abandon(
    struct cycle *cycle, const struct cycle *in_force, const struct adopted *adopted);
/* After a commit that failed: abandons all, and gives those in force their options back. */
void listeners_restore(struct cycle *cycle, const struct cycle *in_force,
    const struct adopted *adopted, struct log *log);

/* Whether another master process listens on this socket: then its path stays. */
struct listeners_sharing {
    bool (*is_shared)(void *host, const struct listener *listener);
    void *host; /* given to the operation */
};

/* Hands the sockets of the old configuration to the new one, and closes those that it dropped. */
void listeners_retire(const struct cycle *old, const struct cycle *new,
    const struct listeners_sharing *sharing, struct log *log);
/* Closes all listeners of a configuration, and unlinks the paths that nobody else listens on. */
void listeners_close(
    const struct cycle *cycle, const struct listeners_sharing *sharing, struct log *log);

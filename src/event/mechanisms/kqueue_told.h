/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's numbers with the events of kqueue: bytes before a peer's end, errno, and clients
 * waiting at a listener; used to save system calls. */
#pragma once

#include "event/source.h"

/* A source's; zeroed where nothing is known. */
struct kqueue_told {
    uint32_t left;   /* bytes before the end; of a listener: clients */
    uint32_t wait;   /* a listener's: number of the reporting wait; 0: none */
    int error;       /* an errno after the bytes; 0: the peer has sent FIN */
    bool ended;      /* the peer's end is known */
    bool unwritable; /* output fails with `error`, as connecting has */
};

/* The state of a mechanism's loop, for the operations of sources. */
struct kqueue_telling {
    unsigned kind;
    uint32_t wait; /* counts the waits, and is never 0 */
    const struct source_table *sources;
    struct kqueue_told *told; /* by slot */
};

extern const struct io_ops kqueue_io;

/* Makes the table; -1 with errno. */
int kqueue_telling_init(struct kqueue_telling *telling, const struct source_table *sources);
void kqueue_telling_done(struct kqueue_telling *telling);
/* Forgets the numbers of a source at the begin or end of watching. */
void kqueue_tell_nothing(struct kqueue_telling *telling, const struct source *source);
/* Notes an end: with the bytes before the end for input, and with the errno. */
void kqueue_tell_end(struct kqueue_telling *telling, const struct source *source,
    enum event_direction direction, int64_t bytes, int error);
/* Notes how many clients wait at a listener. */
void kqueue_tell_clients(struct kqueue_telling *telling, const struct source *source, int64_t n);

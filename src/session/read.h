/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads of files for a session: from the call of the SDK to the protocol's `done`. The worker reads
 * the file (worker/file_reads.h), and begins and ends every read here.
 *
 * Responsible for running `done` once, while the connection may be used and takes output; never
 * within a call. Invariant: a read belongs to the session until `done` runs or the session is
 * cleared, and from then on to the thread that still reads, or is freed. */
#pragma once

#include "session/use.h"

#include <stdatomic.h>

#define SESSION_READ_KIND KIND('S', 'R', 'D', 'F')

typedef void session_read_done(fb_conn *conn, void *state, const fb_file_read *read);

/* The first member of the worker's struct of a read, in memory of the net's. */
struct session_read {
    unsigned kind;
    TAILQ_ENTRY(session_read) link;   /* in the session's list */
    TAILQ_ENTRY(session_read) posted; /* in the stream's list, if `is_posted` */
    struct session_use *use;          /* NULL: forgotten */
    session_read_done *done;
    fb_file_read outcome;
    atomic_bool is_forgotten; /* for a thread before the start of the read */
    bool has_ended, is_posted;
};

/* Gives the read to the connection's session; -1 where it takes none, or without memory. */
int session_read_begin(struct fb_conn *conn, struct session_read *read, session_read_done *done);
/* Takes back a read that could not begin. */
void session_read_cancel(struct session_read *read);
/* Ends a read with an outcome: `done` will run, or the read is freed. */
void session_read_end(
    struct stream *stream, struct session_read *read, const fb_file_read *outcome);
/* Forgets the session's reads of files: `done` never runs. */
void session_reads_clear(struct session_use *use);
/* Queues the reads held back by the connection's unsent output. */
void session_reads_release(struct session_use *use);

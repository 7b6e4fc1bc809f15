/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a connection, the two halves, and the owners' calls that change phase and halves. */
#pragma once

#include "net/conn.h"

/* ---- Calls of owners: without an effect on an inactive connection ---- */

/* Calls `data` no more until resumed; unconsumed input is then offered again. */
void conn_stop(struct fb_conn *conn);
void conn_resume(struct fb_conn *conn);
/* Lets a stopped connection end with FB_PEER_GONE after the peer's half and all earlier input. */
void conn_end_with_peer(struct fb_conn *conn, bool ends);
/* Offers unconsumed input, also the rest of a running `data`, again from the loop. */
void conn_offer_again(struct fb_conn *conn);
/* Sends the unsent output, then ends our half; the end of the peer's half ends the connection. */
void conn_shutdown(struct fb_conn *conn);
/* Sends the unsent output, then closes. */
void conn_close(struct fb_conn *conn);
/* Sends the unsent output, then runs `keepalive`; or closes after bytes of the peer. */
void conn_keep(struct fb_conn *conn);
/* Ends the connection in the next flush; FB_ABORTED resets. */
void conn_fail(struct fb_conn *conn, fb_reason reason);
/* Fails a connection by the errno of a system call, and tells the owner. */
void conn_fail_by(struct fb_conn *conn, int error);
/* Fails a connection after a failed connect(), or one too long for the owner (ETIMEDOUT). */
void conn_connect_failed(struct fb_conn *conn, int error, enum io_step step);
/* Before and after the announcement of an owner's end of use of an open connection: in between
 * calls have no effect, as within `closed`, but failing. */
void conn_leave_begin(struct fb_conn *conn);
void conn_leave_end(struct fb_conn *conn);
/* Posts the run of `opened` to the normal queue. */
void conn_open_soon(struct fb_conn *conn);

/* ---- For net/ alone ---- */

/* Unsent bytes to stop reading at, and to go on at. */
#define CONN_HIGH_WATER (64 * 1024)
#define CONN_LOW_WATER (16 * 1024)

#define TO(phase) (1U << CONN_##phase)

/* The legal steps: the next phases of a phase, as bits. */
static const uint16_t conn_steps[CONN_PHASES] = {
    [CONN_FREE] = TO(CONNECTING) | TO(OPENING),
    [CONN_LINGERING] = TO(LINGERED) | TO(FREE),
    [CONN_LINGERED] = TO(FREE),
    [CONN_CONNECTING] = TO(OPENING) | TO(CLOSING_UNCONNECTED) | TO(FAILED) | TO(ENDING),
    [CONN_OPENING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_OPEN] =
        TO(OPENING) /* for another owner */ | TO(CLOSING) | TO(KEEPING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING] = TO(FAILED) | TO(ENDING),
    [CONN_KEEPING] = TO(OPEN) | TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_CLOSING_UNCONNECTED] = TO(CLOSING) | TO(FAILED) | TO(ENDING),
    [CONN_FAILED] = TO(ENDING),
    [CONN_ENDING] = TO(OPEN) /* for another owner */ | TO(LINGERING) | TO(FREE),
};
#undef TO

/* Change the phase, the receiving half and the sending half, and assert that the step is legal. */
static inline void conn_set_phase(struct fb_conn *conn, enum conn_phase phase)
{
    assert((conn_steps[conn->phase] >> phase & 1) != 0);
    conn->phase = phase;
}

static inline void conn_set_read(struct fb_conn *conn, enum conn_read read)
{
    assert(conn->read != CONN_READ_ENDED); /* no state follows the end */
    assert(conn->read != (unsigned)read);
    conn->read = read;
}

void conn_set_write(struct fb_conn *conn, enum conn_write write);
fb_reason conn_reason_of(int error);
/* Tells the owner of the first errno. */
void conn_tell_failed(struct fb_conn *conn, int error);
/* Watches or pauses reading as conn_may_read() says. */
void conn_update_reading(struct fb_conn *conn);
/* Watches for what the connection waits for: room for output, or the end of our connect(). */
void conn_watch_writing(struct fb_conn *conn);
/* Watches for the end of our connect(), and for input too where one system call does both: a report
 * of input is left until `opened` has run. */
void conn_watch_connect(struct fb_conn *conn);
/* Offers unconsumed input to the owner again, and reads on. */
void conn_redeliver(struct fb_conn *conn);
/* Enters a connected socket's phase: `opened` will run. */
void conn_establish(struct fb_conn *conn);
/* Moves the client between gauges of the statistics. */
void conn_count_as(struct fb_conn *conn, enum conn_activity activity);
/* Ends a stopped connection after a break, or after the peer's end where the owner wants so. */
void conn_check_stopped(struct fb_conn *conn);
/* Does so to some of the stopped connections, by the timer for these; the caller flushes. */
void conn_check_all_stopped(struct net *net);

/* Whether input may be received and given to the owner. */
static inline bool conn_may_read(const struct fb_conn *conn)
{
    return (unsigned)conn->phase - CONN_OPENING <= CONN_OPEN - CONN_OPENING &&
           conn->read == CONN_READ_ON && !conn->paused;
}

/* Whether the owner may add output. */
static inline bool conn_may_write(const struct fb_conn *conn)
{
    return conn_is_active(conn) && conn->write == CONN_WRITE_ON;
}

static inline bool conn_is_connecting(const struct fb_conn *conn)
{
    return conn->phase == CONN_CONNECTING || conn->phase == CONN_CLOSING_UNCONNECTED;
}

/* Whether the report of our connect()'s end also proves success. */
static inline bool conn_is_told_connected(const struct fb_conn *conn)
{
    const struct source *source = &conn->source;

    return conn->net->loop.mechanism->tells_refused && !source->eof && source->io->pending == NULL;
}

static inline enum conn_activity conn_activity(const struct fb_conn *conn)
{
    if (conn->unsent > 0)
        return CONN_WRITING;
    return conn->in != NULL ? CONN_READING : CONN_WAITING;
}

static inline void conn_count(struct fb_conn *conn)
{
    enum conn_activity activity = conn_activity(conn);

    if (conn->counted != activity)
        conn_count_as(conn, activity);
}

/* Marks the connection dirty, for the flush after the running callback. The mark is the WRITE event
 * in the flush queue: no list link is needed, and the flush also handles the peer's taking
 * output. */
static inline void conn_mark_dirty(struct fb_conn *conn)
{
    struct loop *loop = &conn->net->loop;
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(conn->phase != CONN_FREE);
    if (event->queue == QUEUE_FLUSH)
        return;
    /* moved from where the mechanism may have posted it: borrowed input is lent no longer then */
    if (event->queue != QUEUE_NONE)
        loop_unpost(loop, event);
    loop_post(loop, event, QUEUE_FLUSH);
}

/* Leaves the flush of a dirty connection, which borrows nothing, to the next turn. */
static inline void conn_postpone_flush(struct fb_conn *conn)
{
    struct event *event = &conn->source.events[EVENT_WRITE];

    assert(event->queue == QUEUE_FLUSH);
    loop_unpost(&conn->net->loop, event);
    loop_post(&conn->net->loop, event, QUEUE_NEXT);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol's resources for a connection, beyond the callbacks: timers, a begun frame, memory,
 * reads of files, resolutions, a name for references. Made when first needed, and given back when
 * the connection changes hands or ends. Invariant: a session_use belongs to one session_conn. */
#pragma once

#include "event/id_timers.h"
#include "names/names.h"
#include "session/conn.h"

#define SESSION_USE_KIND KIND('S', 'U', 'S', 'E')

struct session_receive;

/* A frame that is not whole (frame.c). */
struct session_frame {
    const uint8_t *at;  /* start in the lent input; NULL: the beginning of the input */
    size_t most;        /* limit of the input until the frame is whole; 0: no frame has begun */
    size_t scanned;     /* bytes of the frame known not to hold the delimiter */
    uint64_t delimiter; /* hash of the delimiter */
    uint64_t timeout;
    struct timer timer;
};

struct session_use {
    unsigned kind;
    struct session_conn *session;
    struct id_timers timers;
    struct chunk *temporary;         /* arena of fb_temp_alloc() */
    struct session_receive *receive; /* time to receive in (timeouts.c); NULL: any */
    struct session_frame frame;
    TAILQ_HEAD(session_own_reads, session_read) reads; /* of files (read.c) */
    struct names_owned resolutions;                    /* of names */

    /* messages */
    RB_ENTRY(session_use) named;
    uint64_t name; /* 0: no reference has been asked for */
    unsigned unanswered;
    unsigned guesses; /* references that were never given out */
};

/* Returns NULL where the connection has none. The kind is checked when the session_use ends. */
static inline struct session_use *session_use_of(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    return session != NULL ? session->use : NULL;
}

/* Returns the connection's session_use, created where there is none; NULL without memory. */
struct session_use *session_use_create(struct fb_conn *conn);
/* Likewise, but fails the connection without memory. */
struct session_use *session_use_make(struct fb_conn *conn);

/* fb_timer() and fb_timer_cancel() */
void session_timer_set(struct fb_conn *conn, uint32_t id, uint64_t ms);
void session_timer_cancel(struct fb_conn *conn, uint32_t id);
void session_timers_clear(struct session_use *use);

/* Returns the connection's number in references, at least SESSION_NAME_LEAST; 0 without memory. */
#define SESSION_NAME_BITS 40
#define SESSION_NAME_LEAST (UINT64_C(1) << 19)
uint64_t session_name(struct fb_conn *conn);
/* Whether some connection has had the name. */
bool session_name_was_given(const struct stream *stream, uint64_t name);
/* Returns the connection of the name, or NULL. */
struct fb_conn *session_find(struct stream *stream, uint64_t name);
void session_name_drop(struct session_use *use);

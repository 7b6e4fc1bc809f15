/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a session on one connection.
 *
 * Responsible for every change of it. Never calls a protocol. Invariant: a step that is not in the
 * table below does not happen; SESSION_ENDED is the last. */
#include "stream/session_conn.h"

#define TO(phase) (1U << SESSION_##phase)

/* For each phase those that may follow. */
static const uint8_t steps[SESSION_PHASES] = {
    [SESSION_NEW] = TO(AWAITED) | TO(ACTIVE) | TO(ENDED),
    [SESSION_AWAITED] = TO(ACTIVE) | TO(ENDED),
    [SESSION_ACTIVE] = TO(KEEPALIVE) | TO(ENDED),
    [SESSION_KEEPALIVE] = TO(NEW) /* for another owner */ | TO(ENDED),
};

void session_set_phase(struct fb_conn *conn, enum session_phase phase)
{
    assert(conn->session_phase < SESSION_PHASES);
    assert((steps[conn->session_phase] & 1U << phase) != 0);
    assert(conn->outgoing || phase != SESSION_KEEPALIVE);
    assert(!conn->outgoing || phase != SESSION_AWAITED);
    conn->session_phase = phase;
}

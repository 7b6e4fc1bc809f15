/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes of connections: see handshake.h. */
#include "session/handshake.h"

#include "net/conn_input.h"
#include "net/conn_output.h"
#include "session/end.h"
#include "session/session.h"
#include "tls/layer.h"

#include <errno.h>

static struct session_handshake *pending_handshake(struct tls_pending *pending)
{
    struct session_handshake *handshake = container_of(pending, struct session_handshake, pending);

    CHECK_KIND(handshake, SESSION_HANDSHAKE_KIND);
    return handshake;
}

/* Puts the layer on the connection. */
static void layer_handshake(struct session_handshake *handshake, const struct tls_reply *reply)
{
    struct fb_conn *conn = handshake->conn;

    if (!tls_link_takes(stream_of(conn)->tls_link, &reply->session) || conn->out != NULL) {
        conn_log(conn, LEVEL_ALERT, 0, "the engine has made a handshake that cannot be");
        handshake->failed(handshake);
        return;
    }
    conn_debug(conn, "TLS: the handshake is done");
    if (layer_begin(conn, &reply->session, (fb_bytes) { reply->out, reply->out_n }) == -1) {
        conn_fail(conn, FB_NO_MEMORY);
        return;
    }
    if (handshake->offload)
        layer_allow_offload(conn);
    handshake->done(handshake, reply);
}

static void handshake_replied(
    struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply)
{
    struct session_handshake *handshake = pending_handshake(pending);
    struct fb_conn *conn = handshake->conn;

    assert(reply->used <= handshake->fed);
    conn_drop_input(conn, reply->used);
    handshake->fed = 0;
    if (conn_is_active(conn) && step == TLS_DONE) {
        layer_handshake(handshake, reply);
    } else if (conn_is_active(conn)) {
        conn_write(conn, reply->out, reply->out_n);
        if (step == TLS_MORE) {
            conn_resume(conn);
        } else {
            conn_log(
                conn, reply->severe ? LEVEL_ERROR : session_level_of(conn), 0, "%s", reply->text);
            if (reply->local || reply->severe)
                session_failed(conn, EAGAIN);
            handshake->failed(handshake);
        }
    }
    net_flush(conn->net);
}

void session_handshake_init(struct session_handshake *handshake, struct fb_conn *conn,
    void (*done)(struct session_handshake *handshake, const struct tls_reply *reply),
    void (*failed)(struct session_handshake *handshake))
{
    *handshake = (struct session_handshake) {
        .kind = SESSION_HANDSHAKE_KIND,
        .conn = conn,
        .pending.replied = handshake_replied,
        .done = done,
        .failed = failed,
    };
}

bool session_handshake_feed(
    struct session_handshake *handshake, const struct tls_start *start, fb_bytes in)
{
    struct fb_conn *conn = handshake->conn;
    struct tls_link *link = stream_of(conn)->tls_link;

    assert(handshake->fed == 0 && (in.n > 0 || start->role == TLS_CLIENT));
    if (handshake->pending.number == 0 && tls_link_begin(link, &handshake->pending, start) == -1) {
        conn_log(
            conn, session_level_of(conn), 0, "no handshake can begin: %s", tls_link_refusal(link));
        session_failed(conn, EAGAIN);
        return false;
    }
    if (in.n > TLS_FEED_MOST)
        in.n = TLS_FEED_MOST;
    handshake->fed = in.n;
    handshake->offload = start->offload;
    conn_stop(conn);
    tls_link_feed(link, &handshake->pending, in);
    return true;
}

void session_handshake_eof(struct fb_conn *conn, fb_bytes rest)
{
    (void)rest;
    conn_log(conn, session_level_of(conn), 0, "peer closed connection in SSL handshake");
    if (!conn->outgoing)
        session_end_note(conn, SESSION_END_TLS_FAILED);
    conn_fail(conn, FB_PEER_GONE);
}

void session_handshake_expired(
    struct fb_conn *conn, uint64_t since, uint64_t timeout, fb_reason reason)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - since;

    if (passed < timeout) { /* the time is longer than a deadline can be */
        conn_deadline_set(conn, timeout - passed);
        return;
    }
    conn_log(conn, session_level_of(conn), ETIMEDOUT,
        conn->outgoing ? "upstream timed out" : "client timed out");
    conn_fail(conn, reason);
}

void session_handshake_leave(struct session_handshake *handshake)
{
    if (handshake->pending.number != 0)
        tls_link_cancel(stream_of(handshake->conn)->tls_link, &handshake->pending);
    handshake->kind = 0;
}

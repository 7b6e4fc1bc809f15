/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of a client's handshake: the name in the ClientHello chooses the server, the engine
 * shakes hands (session/handshake.h), and the client's certificate is what the server wants. A
 * client that tests a name is shown the certificate for the test, and closed. */
#include "features/ssl/handshake.h"

#include "features/server_name/server_name.h"
#include "net/conn_output.h"
#include "session/end.h"
#include "session/handshake.h"
#include "session/session.h"
#include "session/timeouts.h"
#include "session/tls.h"
#include "text/tls_paths.h"
#include "tls/hello.h"
#include "tls/record.h"

#include <string.h>

/* conn->state in SESSION_TLS. */
struct ssl_handshake {
    struct session_handshake core; /* the first member */
    uint64_t since;                /* monotonic ms: when the phase began */
    bool chooses;                  /* the ClientHello has still to choose server and profile */
    bool challenge;                /* the profile is the server's for challenges */
    bool answered;                 /* ... and the handshake was all that the client wanted */
    struct tls_hello hello;
};

static const struct conn_ops handshake_ops;

static struct ssl_handshake *handshake_of(const struct fb_conn *conn)
{
    struct ssl_handshake *handshake = conn->state;

    assert(conn->session_phase == SESSION_TLS);
    CHECK_KIND(&handshake->core, SESSION_HANDSHAKE_KIND);
    return handshake;
}

static const struct tls_profile *profile_of(const struct fb_conn *conn)
{
    const struct tls_profile *own = session_server_of(conn)->tls;

    return own != NULL ? own : session_binding_of(conn)->tls;
}

static void end_handshake(struct session_handshake *core, const struct tls_reply *reply);

/* Ends the session of a client without a handshake. */
static COLD void end_unshaken(struct fb_conn *conn)
{
    session_end_note(conn, SESSION_END_TLS_FAILED);
    conn_close(conn);
}

static void handshake_failed(struct session_handshake *core)
{
    end_unshaken(core->conn);
}

unsigned ssl_handshake_begin(struct fb_conn *conn, const void *arg)
{
    struct ssl_handshake *handshake;

    (void)arg;
    if (!session_binding_of(conn)->ssl || conn->source.layered) /* by an earlier server */
        return 0;
    assert(conn->phase == CONN_OPEN && conn->state == NULL && profile_of(conn) != NULL);
    handshake = memory_alloc(conn->net->memory, sizeof(*handshake));
    if (handshake == NULL) {
        conn_fail(conn, FB_NO_MEMORY);
        return 0;
    }
    *handshake = (struct ssl_handshake) {
        .since = conn->net->loop.clock.mono_ms,
        .chooses =
            session_binding_of(conn)->names != NULL || session_server_of(conn)->challenges != NULL,
    };
    session_handshake_init(&handshake->core, conn, end_handshake, handshake_failed);
    conn->state = handshake;
    session_set_phase(conn, SESSION_TLS);
    conn->ops = &handshake_ops;
    conn_deadline_set(conn, profile_of(conn)->handshake_timeout);
    return 0;
}

/* Gives the connection its earlier operations back, and frees the memory of the phase. */
static void leave_handshake(struct fb_conn *conn)
{
    struct ssl_handshake *handshake = handshake_of(conn);

    session_handshake_leave(&handshake->core);
    memory_release(conn->net->memory, handshake);
    conn->state = NULL;
    conn->ops = session_receive_ops(conn);
}

/* ---- The client's bytes ---- */

/* Refuses a client by an alert of our own. */
static COLD void refuse_client(struct fb_conn *conn, enum tls_alert alert, const char *why)
{
    const uint8_t record[] = { TLS_ALERT, 3, 1, 0, 2, 2, (uint8_t)alert };

    conn_log(conn, LEVEL_INFO, 0, "%s", why);
    conn_write(conn, record, sizeof(record));
    end_unshaken(conn);
}

/* Sets the deadline by the server's time since the begin of the phase. */
static void set_deadline(struct fb_conn *conn)
{
    uint64_t passed = conn->net->loop.clock.mono_ms - handshake_of(conn)->since;
    uint64_t timeout = profile_of(conn)->handshake_timeout;

    conn_deadline_set(conn, timeout > passed ? timeout - passed : 1);
}

/* Whether the client offers the protocol of challenges, and no other one (RFC 8737). */
static bool asks_for_challenge(const struct tls_hello *hello, fb_bytes in)
{
    static const char only[] = SSL_CHALLENGE_ALPN;
    uint8_t protocols[sizeof(only) - 1];

    if (hello->status != TLS_HELLO_WHOLE || hello->protocols.n != sizeof(protocols))
        return false;
    tls_hello_copy(in, hello->protocols, protocols);
    return memcmp(protocols, only, sizeof(protocols)) == 0;
}

/* Lets the ClientHello choose the server by its name, and the profile; false: the message is not
 * whole, or the client is refused. */
static bool choose_server(struct ssl_handshake *handshake, fb_bytes in)
{
    struct fb_conn *conn = handshake->core.conn;
    enum tls_hello_status status = tls_hello_parse(&handshake->hello, in);

    if (status == TLS_HELLO_MORE && in.n < TLS_HANDSHAKE_MOST)
        return false;
    if (status == TLS_HELLO_MORE) {
        refuse_client(conn, TLS_DECODE_ERROR, "too long ClientHello");
        return false;
    }
    handshake->chooses = false;
    if (server_name_choose(conn, &handshake->hello, in) == -1) {
        conn_fail(conn, FB_NO_MEMORY);
        return false;
    }
    handshake->challenge =
        session_server_of(conn)->challenges != NULL && asks_for_challenge(&handshake->hello, in);
    set_deadline(conn);
    return true;
}

static size_t handshake_data(struct fb_conn *conn, fb_bytes in)
{
    struct ssl_handshake *handshake = handshake_of(conn);
    struct tls_start start = { .role = TLS_SERVER };
    const struct tls_profile *profile;

    if (handshake->chooses && !choose_server(handshake, in))
        return conn_is_active(conn) ? 0 : in.n;
    profile = handshake->challenge ? session_server_of(conn)->challenges : profile_of(conn);
    if (profile->reject) {
        refuse_client(conn, TLS_UNRECOGNIZED_NAME, "handshake rejected");
        return in.n;
    }
    if (handshake->core.pending.number == 0) {
        int status = tls_paths_set(conn, profile, &handshake->hello, in, &start);

        if (status == -1 && conn_is_active(conn))
            refuse_client(conn, TLS_INTERNAL_ERROR, "handshake rejected");
        if (status != 1)
            return status == 0 ? 0 : in.n;
    }
    start.profile = profile->index;
    start.offload = profile->offload;
    if (!session_handshake_feed(&handshake->core, &start, in)) {
        end_unshaken(conn);
        return in.n;
    }
    return 0;
}

static void handshake_expired(struct fb_conn *conn)
{
    session_handshake_expired(
        conn, handshake_of(conn)->since, profile_of(conn)->handshake_timeout, FB_TIMED_OUT);
}

/* ---- The end of the handshake ---- */

/* Lets the session go on, or ends the session of a refused client and of a challenge: the layer
 * tells the client so, within the time of the handshake. */
static void end_handshake(struct session_handshake *core, const struct tls_reply *reply)
{
    struct fb_conn *conn = core->conn;

    session_tls_set(conn, reply);
    if (!conn_is_active(conn))
        return;
    if (handshake_of(conn)->challenge) {
        handshake_of(conn)->answered = true;
        session_end_note(conn, SESSION_END_CHALLENGE);
        conn_close(conn);
        return;
    }
    if (!session_tls_accepts(conn, profile_of(conn), &reply->session)) {
        end_unshaken(conn);
        return;
    }
    conn->received = conn->sent = 0;
    conn_deadline_clear(conn);
    leave_handshake(conn);
    conn_resume(conn);
    session_proceed(conn);
}

/* ---- What happens as in any session ---- */

static void handshake_closed(struct fb_conn *conn, fb_reason reason)
{
    conn->received = conn->sent = 0; /* the handshake is no part of the session's bytes */
    if (!handshake_of(conn)->answered)
        session_set_status(conn, STATUS_INTERNAL); /* whatever the reason, as in nginx */
    leave_handshake(conn);
    session_closed(conn, reason);
}

static void handshake_describe(
    const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT])
{
    session_describe(conn, line, text);
    line->action = "SSL handshaking";
}

static const struct conn_ops handshake_ops = {
    .data = handshake_data,
    .eof = session_handshake_eof,
    .writable = session_ignore,
    .expired = handshake_expired,
    .closed = handshake_closed,
    .failed = session_failed,
    .describe = handshake_describe,
};

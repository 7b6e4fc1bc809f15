/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshakes within sessions: see secure.h. The connection's callbacks lie in memory that lasts as
 * long as the handshake; an established session keeps nothing of it. */
#include "session/secure.h"

#include "net/conn_input.h"
#include "net/conn_output.h"
#include "session/end.h"
#include "session/frame.h"
#include "session/idle.h"
#include "session/session.h"
#include "session/timeouts.h"
#include "session/use.h"

/* ---- Output since the begin ---- */

/* Exchanges the connection's output and the kept output. */
static void swap_secure_output(struct fb_conn *conn, struct session_secure *secure)
{
    struct chunk *out = conn->out;
    size_t unsent = conn->unsent;

    assert(conn->net->borrower != conn);
    conn->out = secure->out;
    conn->unsent = secure->unsent;
    secure->out = out;
    secure->unsent = unsent;
}

bool session_secure_write_begin(struct fb_conn *conn)
{
    struct session_secure *secure = session_secure_of(conn);

    if (secure->shuts || !conn_own_output(conn))
        return false;
    if (conn->out != NULL) /* borrowed until now, perhaps, and not dirty */
        conn_mark_dirty(conn);
    swap_secure_output(conn, secure);
    return true;
}

void session_secure_write_end(struct fb_conn *conn)
{
    conn_own_output(conn);
    swap_secure_output(conn, session_secure_of(conn));
}

/* ---- The end of the phase ---- */

/* Gives the connection its own callbacks back, and frees the memory of the phase. */
static void leave_secure(struct fb_conn *conn)
{
    struct session_secure *secure = session_secure_of(conn);

    assert(secure->out == NULL && secure->unsent == 0);
    session_handshake_leave(&secure->core);
    conn->ops = session_receive_ops(conn);
    secure->kind = 0;
    memory_release(conn->net->memory, secure);
}

/* Leaves the bytes of the handshake out of the session's. */
static void count_plain_bytes(struct fb_conn *conn, const struct session_secure *secure)
{
    if (secure->heard)
        conn->received = secure->received;
    if (conn->sent > secure->sent)
        conn->sent = secure->sent;
    session_stats_resume(conn, &secure->mark);
}

/* Leaves the phase with TLS on the connection, in the state that the protocol has asked for. */
static void end_handshake_phase(struct fb_conn *conn)
{
    struct session_secure *secure = session_secure_of(conn);
    bool opens = secure->opens, stopped = secure->stopped, shuts = secure->shuts;

    assert(conn->out == NULL && conn->source.layered);
    swap_secure_output(conn, secure);
    if (conn->out != NULL)
        conn_mark_dirty(conn);
    conn_deadline_clear(conn);
    leave_secure(conn);
    if (opens)
        session_set_phase(conn, SESSION_NEW);
    else
        session_become_active(conn);
    if (stopped) /* within the phase, perhaps, before reading had begun */
        conn_stop(conn);
    else
        conn_resume(conn);
    if (shuts)
        conn_shutdown(conn);
}

static void secure_done(struct session_handshake *core, const struct tls_reply *reply)
{
    struct fb_conn *conn = core->conn;
    struct session_secure *secure = session_secure_of(conn);
    void (*done)(struct fb_conn *conn, const struct tls_reply *reply) = secure->options.done;

    assert(conn_is_active(conn));
    count_plain_bytes(conn, secure);
    end_handshake_phase(conn);
    done(conn, reply);
}

/* Closes the connection after what the engine has still to say, with the reason of no handshake. */
static void close_unsecured(struct fb_conn *conn, fb_reason reason)
{
    session_secure_of(conn)->reason = (uint8_t)reason;
    if (!conn->outgoing)
        session_end_note(conn, SESSION_END_TLS_FAILED);
    conn_close(conn);
}

static void secure_failed(struct session_handshake *core)
{
    close_unsecured(core->conn, FB_TLS_FAILED);
}

static void secure_closed(struct fb_conn *conn, fb_reason reason)
{
    struct session_secure *secure = session_secure_of(conn);
    bool opens = secure->opens, shook = !secure->awaits;

    if (secure->reason != 0)
        reason = (fb_reason)secure->reason;
    if (!conn->outgoing && (reason == FB_TLS_FAILED || reason == FB_TLS_TIMED_OUT))
        session_set_status(conn, STATUS_INTERNAL); /* the same as before `opened` */
    if (opens && shook && (reason == FB_RESET || reason == FB_IO_ERROR))
        conn_log(conn, session_level_of(conn), conn->session->error,
            "peer broke the connection in SSL handshake");
    count_plain_bytes(conn, secure);
    swap_secure_output(conn, secure);
    conn_drop_output(conn);
    leave_secure(conn);
    session_set_phase(conn, opens ? SESSION_NEW : SESSION_ACTIVE);
    session_closed(conn, reason);
}

/* ---- Meanwhile ---- */

/* Prepares the start of the handshake, once: as session_secure_options.prepare. */
static int prepare_start(struct session_secure *secure, fb_bytes in)
{
    struct session_secure_options *options = &secure->options;
    int status = options->prepare != NULL
                     ? options->prepare(secure->core.conn, &secure->hello, in, &options->start)
                     : 1;

    if (status == 1)
        options->prepare = NULL;
    return status;
}

static size_t secure_data(struct fb_conn *conn, fb_bytes in)
{
    struct session_secure *secure = session_secure_of(conn);
    int status;

    if (!secure->heard) {
        secure->heard = true;
        secure->received = conn->received - in.n;
    }
    status = prepare_start(secure, in);
    if (status == 0)
        return 0;
    if (status == -1 || !session_handshake_feed(&secure->core, &secure->options.start, in)) {
        if (conn_is_active(conn))
            close_unsecured(conn, FB_TLS_FAILED);
        return in.n;
    }
    return 0;
}

static void secure_expired(struct fb_conn *conn)
{
    const struct session_secure *secure = session_secure_of(conn);

    if (secure->awaits)
        stream_of(conn)->backends->connect_expired(conn);
    else
        session_handshake_expired(conn, secure->since, secure->options.timeout, FB_TLS_TIMED_OUT);
}

static bool keep_unsecured(struct fb_conn *conn)
{
    (void)conn;
    return false;
}

static void secure_describe(
    const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT])
{
    session_describe(conn, line, text);
    if (session_secure_of(conn)->awaits)
        return;
    line->action = conn->outgoing ? "SSL handshaking to upstream" : "SSL handshaking";
    if (conn->outgoing) /* the handshake's bytes are none of the session's */
        line->relay.from_upstream = line->relay.to_upstream = 0;
}

/* ---- The begin ---- */

bool session_secure_is_possible(const struct fb_conn *conn)
{
    return conn->phase == CONN_OPEN && conn->read != CONN_READ_ENDED &&
           conn->write == CONN_WRITE_ON && conn->pipe == NULL && !conn->source.layered &&
           !session_is_securing(conn) && stream_of(conn)->tls_link != NULL;
}

/* Sends a client's first bytes, and listens to the peer. */
static void begin_handshake(struct fb_conn *conn)
{
    struct session_secure *secure = session_secure_of(conn);

    conn_write(conn, secure->options.before.p, secure->options.before.n);
    secure->options.before.n = 0;
    secure->since = conn->net->loop.clock.mono_ms;
    secure->sent = conn->sent + conn->unsent;
    session_stats_pause(conn, &secure->mark);
    if (!conn_is_active(conn))
        return;
    conn_deadline_set(conn, secure->options.timeout);
    conn_resume(conn);
    conn_offer_again(conn); /* the rest of a running `data` */
    if (secure->options.start.role == TLS_CLIENT &&
        !session_handshake_feed(&secure->core, &secure->options.start, (fb_bytes) { NULL, 0 }))
        close_unsecured(conn, FB_TLS_FAILED);
}

/* Goes on when the connect has been answered. */
static void secure_opened(struct fb_conn *conn)
{
    struct session_secure *secure = session_secure_of(conn);

    assert(secure->awaits && secure->opens);
    secure->awaits = false;
    secure->stopped = secure->stopped || conn->read == CONN_READ_STOPPED;
    if (!conn->source.layered) {
        begin_handshake(conn);
        return;
    }
    end_handshake_phase(conn);
    conn->ops->opened(conn);
}

static struct session_secure *create_secure(
    struct fb_conn *conn, const struct session_secure_options *options)
{
    struct session_secure *secure = memory_alloc(conn->net->memory, sizeof(*secure));

    if (secure == NULL)
        return NULL;
    *secure = (struct session_secure) {
        .kind = SESSION_SECURE_KIND,
        .ops = session_conn_ops,
        .options = *options,
        .opens = conn->session_phase == SESSION_NEW,
        .stopped = conn->read == CONN_READ_STOPPED,
    };
    secure->ops.opened = secure_opened;
    secure->ops.data = secure_data;
    secure->ops.eof = session_handshake_eof;
    secure->ops.expired = secure_expired;
    secure->ops.closed = secure_closed;
    secure->ops.keepalive = keep_unsecured;
    secure->ops.describe = secure_describe;
    session_handshake_init(&secure->core, conn, secure_done, secure_failed);
    return secure;
}

int session_secure_begin(struct fb_conn *conn, const struct session_secure_options *options)
{
    struct session_secure *secure = create_secure(conn, options);

    assert(session_secure_is_possible(conn) && options->done != NULL && options->timeout > 0);
    assert(conn->session_phase != SESSION_NEW);
    if (secure == NULL)
        return -1;
    if (session_use_of(conn) != NULL)
        frame_forget(session_use_of(conn));
    if (conn->idle)
        idle_leave(conn);
    session_set_phase(conn, SESSION_SECURING);
    conn->ops = &secure->ops;
    begin_handshake(conn);
    return 0;
}

int session_secure_await(struct fb_conn *conn, const struct session_secure_options *options)
{
    struct session_secure *secure = create_secure(conn, options);

    assert(conn->outgoing && conn_is_active(conn) && conn->phase != CONN_OPEN);
    assert(conn->out == NULL && options->done != NULL && options->timeout > 0);
    if (secure == NULL)
        return -1;
    assert(secure->opens);
    secure->awaits = true;
    session_set_phase(conn, SESSION_SECURING);
    conn->ops = &secure->ops;
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A session: events of a connection are given to the server's protocol. A client's session begins
 * in steps, named by verbs:
 *
 *     accept   session_accept()    a slot for the descriptor, its binding: SESSION_NEW
 *     begin    session_begin()     the line of the log, the chain of servers
 *     proceed  session_proceed()   after the PROXY header, and after preread: passed, or served
 *     admit    admit_client()      phase handlers, the protocol's state: SESSION_AWAITED or ACTIVE
 *     open     open_session()      the protocol's `opened`; the only step of a server connection
 *     serve    session_serve()     the last two
 *
 * Responsible for the beginning of a client's session, for calling the protocol, and for the end.
 * Never sends or closes a connection directly within a callback; asks the connection to. */
#include "session/session.h"

#include "base/compiler.h"
#include "base/trace.h"
#include "net/address_parse.h"
#include "net/conn_connect.h"
#include "os/descriptor.h"
#include "session/conn_end.h"
#include "session/end.h"
#include "session/frame.h"
#include "session/idle.h"
#include "session/log.h"
#include "session/read.h"
#include "session/stats.h"
#include "session/timeouts.h"
#include "session/use.h"

#include <errno.h>
#include <string.h>

/* Limits of unconsumed input, and of unsent output, in bytes, where no limit is set. */
#define INPUT_LIMIT 65536
#define OUTPUT_LIMIT (64 * 1024 * 1024)

/* Finds the binding of the client's destination address, among several. */
static COLD struct binding *find_binding_of_address(struct port *port, int fd)
{
    struct binding *first = STAILQ_FIRST(&port->bindings), *binding;
    struct address local = { .length = sizeof(local.un) };

    if (getsockname(fd, &local.any, &local.length) == -1)
        return first;
    STAILQ_FOREACH (binding, &port->bindings, link)
        if (address_equal(&binding->address, &local))
            return binding;
    return first;
}

static bool is_debugged(const struct stream *stream, const struct sockaddr *peer)
{
    for (unsigned i = 0; i < stream->debug_n; i++)
        if (address_block_matches(&stream->debug[i], peer))
            return true;
    return false;
}

struct fb_conn *session_accept(
    struct stream *stream, struct port *port, int fd, const struct sockaddr *peer)
{
    struct binding *binding = STAILQ_FIRST(&port->bindings);
    struct fb_conn *conn;

    CHECK_KIND(port, PORT_KIND);
    CHECK_KIND(binding, BINDING_KIND);
    if (unlikely(port->several))
        binding = find_binding_of_address(port, fd);
    conn = conn_create(&stream->net, fd, peer, binding->ops, binding);
    if (conn == NULL) {
        descriptor_discard(fd);
        return NULL;
    }
    session_set_phase(conn, SESSION_NEW);
    if (binding->server->connects)
        net_reserve(&stream->net, 1);
    if (unlikely(stream->debug_n > 0))
        conn->debug = is_debugged(stream, peer);
    counters_add(stream->net.counters, COUNTER_HANDLED, 1);
    session_stats_accept(conn);
    return conn;
}

static COLD void note_refusal(struct fb_conn *conn, unsigned status)
{
    if (status == STATUS_FORBIDDEN)
        session_end_note(conn, SESSION_END_DENIED);
    else if (status == STATUS_UNAVAILABLE)
        session_end_note(conn, SESSION_END_LIMIT);
}

/* Runs the phases before the protocol, but after preread; false: held up, or ended. */
static NOINLINE bool pass_phases(struct fb_conn *conn, const struct phase_handler *handler)
{
    unsigned held_at = conn->session_phase;

    if (held_at == SESSION_PREREAD)
        return true;
    for (; handler != NULL; handler = handler->next) {
        unsigned status;

        if (held_at == SESSION_TLS && handler->phase <= PHASE_SSL)
            continue;
        status = handler->run(conn, handler->arg);

        if (status != 0) {
            session_set_status(conn, status);
            note_refusal(conn, status);
            conn_close(conn);
        }
        if (!conn_is_active(conn) || conn->session_phase != held_at)
            return false;
    }
    return true;
}

bool session_begin(struct fb_conn *conn)
{
    conn->opened_ms = conn->net->loop.clock.mono_ms;
    if (conn_logs(conn, LEVEL_INFO))
        session_log_start(conn);
    return (!session_server_of(conn)->connects && session_binding_of(conn)->names == NULL) ||
           stream_of(conn)->backends->begin(conn);
}

/* Gives the connection the protocol's state, zeroed; false without memory. */
static inline bool give_state(
    struct stream *stream, struct fb_conn *conn, const struct server *server)
{
    struct stream_slab *slab = &stream->slabs[server->protocol_index];
    size_t state = server->protocol->conn_state;

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && conn->state == NULL && state > 0);
    if (unlikely(slab->base == NULL) && !stream_map_slab(stream, slab, state))
        return false;
    conn->state =
        slab->base + slab->stride * source_index(&stream->net.loop.sources, &conn->source);
    memset(conn->state, 0, slab->stride);
    return true;
}

/* Runs the phase handlers, makes the protocol's state; false: not yet, or the connection ends. */
static ALWAYS_INLINE bool admit_client(struct stream *stream, struct fb_conn *conn)
{
    const struct binding *binding = conn->owner;
    const struct server *server = binding->server;

    if (server->before != NULL && !pass_phases(conn, server->before))
        return false;
    if (server->protocol == NULL) {
        conn_close(conn);
        return false;
    }
    conn_debug(conn, "opened for \"%s\"", server->protocol->name);
    trace_session_begin(conn->number, server->protocol->name);
    session_stats_begin(conn);
    if (server->protocol->conn_state > 0 && !give_state(stream, conn, server)) {
        conn_log(
            conn, LEVEL_CRIT, errno, "no memory for the state of \"%s\"", server->protocol->name);
        conn_fail(conn, FB_NO_MEMORY);
        return false;
    }
    if (server->settings.receive_timeout > 0) {
        session_receive_set(conn, (uint64_t)server->settings.receive_timeout);
        if (!conn_is_active(conn)) /* the protocol does not know of it */
            return false;
    }
    if (server->settings.first_byte_timeout > 0)
        session_set_phase(conn, SESSION_AWAITED); /* the time begins behind `opened` */
    else
        session_become_active(conn);
    return true;
}

/* Calls the protocol's `opened`; the protocol may refuse the connection there. */
static inline void open_session(
    const struct stream *stream, struct fb_conn *conn, const fb_ops *ops)
{
    int result = 0;

    if (SESSION_HAS(ops, opened)) {
        session_callback_begin(conn, CALLBACK_OPENED);
        result = ops->opened(conn, conn->state);
        session_callback_end(conn);
    }
    if (conn->session_phase == SESSION_AWAITED && conn->read == CONN_READ_ON)
        session_await_first_byte(conn);
    if (result != 0)
        conn_fail(conn, FB_REFUSED);
    else if (stream->draining && conn_is_active(conn) && conn->pipe == NULL)
        session_call_draining(conn);
}

static void session_opened(struct fb_conn *conn)
{
    const struct binding *binding = conn->owner;
    struct stream *stream = stream_of(conn);
    const fb_ops *ops;

    assert(conn->session_phase == SESSION_NEW);
    if (conn->outgoing) {
        if (conn->session->use != NULL) /* the protocol's calls were possible since the connect */
            session_reads_release(conn->session->use);
        session_become_active(conn); /* the timer was the connect's */
        ops = conn->session->ops;
    } else {
        CHECK_KIND(binding, BINDING_KIND); /* once, not for each callback */
        if (!session_begin(conn) || !admit_client(stream, conn))
            return;
        ops = likely(conn->session == NULL) ? binding->server->protocol->ops : session_ops_of(conn);
    }
    open_session(stream, conn, ops);
}

void session_move(struct fb_conn *conn, struct binding *binding)
{
    CHECK_KIND(binding, BINDING_KIND);
    assert(!conn->outgoing && conn->session_phase >= SESSION_NEW);
    assert(conn->session_phase <= SESSION_PREREAD);
    net_reserve(conn->net, -session_keeps_slot(conn));
    session_stats_end(conn, SESSION_END_NONE);
    conn->owner = binding;
    session_stats_accept(conn);
    net_reserve(conn->net, session_keeps_slot(conn));
}

void session_serve(struct fb_conn *conn)
{
    struct stream *stream = stream_of(conn);

    assert(conn->session_phase >= SESSION_HEADER && conn->session_phase <= SESSION_PREREAD);
    if (session_server_of(conn)->connects && !stream->backends->chosen(conn))
        return;
    if (admit_client(stream, conn))
        open_session(stream, conn, session_ops_of(conn));
}

void session_proceed(struct fb_conn *conn)
{
    const struct server *server = session_server_of(conn);

    if (server->proceed != NULL)
        server->proceed(conn);
    else
        session_serve(conn);
}

/* Returns how much unconsumed input ends a connection. */
static size_t input_limit(const struct fb_conn *conn)
{
    const struct session_use *use = session_use_of(conn);
    const struct server *server = session_server_of(conn);
    const fb_protocol *protocol = server->protocol;

    if (use != NULL && use->frame.most > 0)
        return use->frame.most;
    if (server->settings.input_limit > 0)
        return (size_t)server->settings.input_limit;
    return protocol->input_limit > 0 ? protocol->input_limit : INPUT_LIMIT;
}

/* Checks the input left by `data`, and a begun frame; returns the number of bytes consumed. */
static NOINLINE size_t see_to_rest(struct fb_conn *conn, fb_bytes in, size_t used)
{
    if (used > in.n) {
        conn_log(conn, LEVEL_ALERT, 0, "\"%s\" consumed %zu bytes of %zu",
            session_server_of(conn)->protocol->name, used, in.n);
        log_debug_point(conn->net->log, "a protocol consumed more than there is");
        conn_fail(conn, FB_ABORTED);
        return in.n;
    }
    if (conn->session_phase == SESSION_SECURING) /* the rest is the engine's */
        return used;
    if (conn->session != NULL) {
        if (session_use_of(conn) != NULL)
            frame_consumed(session_use_of(conn), in.p + used);
        if (conn->session->has_become) { /* the rest is for the new callbacks */
            conn->session->has_become = false;
            return used;
        }
    }
    if (used < in.n && in.n - used >= input_limit(conn) && conn->read != CONN_READ_STOPPED &&
        conn->pipe == NULL)
        conn_fail(conn, FB_INPUT_LIMIT);
    return used;
}

static size_t session_data(struct fb_conn *conn, fb_bytes in);

/* Takes the awaited first bytes of a client. */
static COLD size_t take_first(struct fb_conn *conn, fb_bytes in)
{
    session_become_active(conn);
    return session_data(conn, in);
}

static size_t session_data(struct fb_conn *conn, fb_bytes in)
{
    const fb_ops *ops;
    size_t used;

    if (unlikely(conn->session_phase != SESSION_ACTIVE))
        return take_first(conn, in);
    ops = session_server_of(conn)->protocol->ops;
    if (unlikely(conn->session != NULL))
        ops = session_ops_of(conn);
    if (unlikely(!SESSION_HAS(ops, data)))
        return in.n;
    session_callback_begin(conn, CALLBACK_DATA);
    used = ops->data(conn, conn->state, in);
    session_callback_end(conn);
    if (likely(used == in.n && conn->session == NULL))
        return used;
    return see_to_rest(conn, conn->net->lent, used);
}

static void session_eof(struct fb_conn *conn, fb_bytes rest)
{
    const fb_ops *ops = session_ops_of(conn);

    if (session_use_of(conn) != NULL)
        frame_forget(session_use_of(conn));
    if (!SESSION_HAS(ops, eof)) {
        session_close(conn);
        return;
    }
    session_callback_begin(conn, CALLBACK_EOF);
    ops->eof(conn, conn->state, rest);
    session_callback_end(conn);
}

static void session_writable(struct fb_conn *conn)
{
    const fb_ops *ops = session_ops_of(conn);

    if (unlikely(session_use_of(conn) != NULL))
        session_reads_release(session_use_of(conn));
    if (!SESSION_HAS(ops, writable))
        return;
    session_callback_begin(conn, CALLBACK_WRITABLE);
    ops->writable(conn, conn->state);
    session_callback_end(conn);
}

static size_t session_output_limit(const struct fb_conn *conn)
{
    const struct server *server = session_server_of(conn);
    uint64_t limit = (uint64_t)server->settings.output_limit;

    if (limit == 0 && server->protocol != NULL)
        limit = server->protocol->output_limit;
    if (limit == 0)
        limit = OUTPUT_LIMIT;
    return limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
}

static void session_unwritable(struct fb_conn *conn)
{
    const fb_ops *ops = session_ops_of(conn);

    if (!SESSION_HAS(ops, unwritable))
        return;
    session_callback_begin(conn, CALLBACK_UNWRITABLE);
    ops->unwritable(conn, conn->state);
    session_callback_end(conn);
}

/* Runs the phase of the log. */
static NOINLINE void note_session_end(struct fb_conn *conn, fb_reason reason)
{
    const struct phase_handler *handler = session_server_of(conn)->after;

    if (session_status(conn) == 0)
        session_set_status(conn, reason == FB_NO_MEMORY ? STATUS_INTERNAL : STATUS_OK);
    session_end_conclude(conn, reason);
    for (; handler != NULL; handler = handler->next)
        handler->run(conn, handler->arg);
}

/* Counts the end of a client's session, for the statistics and for who traces. */
static inline void count_session_end(struct fb_conn *client, enum session_end end)
{
    const fb_protocol *protocol = session_server_of(client)->protocol;

    session_stats_end(client, end);
    trace_session_end(client->number, protocol != NULL ? protocol->name : NULL,
        session_end_names[end], client->received, client->sent,
        client->opened_ms > 0 ? client->net->loop.clock.mono_ms - client->opened_ms : 0);
}

void session_closed(struct fb_conn *conn, fb_reason reason)
{
    struct session_conn *session = conn->session;
    const struct server *server = session_server_of(conn);

    if (session != NULL && !LIST_EMPTY(&session->children))
        session_conn_end_children(session);
    if (conn_logs(conn, LEVEL_INFO))
        session_log_end(conn, reason);
    if (server->after != NULL && !conn->outgoing)
        note_session_end(conn, reason);
    if (!conn->outgoing)
        count_session_end(conn, session_end_of(conn, reason));
    if (unlikely(reason == FB_PIPE_BROKEN) && server->protocol->api < 4)
        reason = FB_ABORTED; /* API 3 lacks FB_PIPE_BROKEN */
    if (unlikely(conn->outgoing && conn->session_phase == SESSION_NEW) && net_is_full(conn->net))
        net_lend_slot(conn->net); /* the protocol may try another server */
    if (conn->outgoing || conn->session_phase > SESSION_PREREAD) /* the protocol knows of it */
        session_call_closed(conn, session_ops_of(conn), reason);
    if (unlikely(conn->idle))
        idle_leave(conn);
    session_set_phase(conn, SESSION_ENDED);
    if (session_keeps_slot(conn))
        net_reserve(conn->net, -1);
    if (conn->session != NULL)
        session_conn_free(conn);
}

void session_ignore(struct fb_conn *conn)
{
    (void)conn;
}

void session_failed(struct fb_conn *conn, int error)
{
    if (conn->session != NULL)
        conn->session->error = (uint16_t)error;
}

void session_describe(const struct fb_conn *conn, struct log_line *line, char text[ADDRESS_TEXT])
{
    const struct fb_conn *client = session_client_of(conn);
    const fb_protocol *protocol = session_server_of(conn)->protocol;
    struct address peer;

    if (client != conn) {
        conn_peer_address(client, &peer);
        line->client = address_format(&peer, false, text);
    }
    if (session_binding_of(conn)->text[0] != '\0') /* empty where the worker has it */
        line->server = session_binding_of(conn)->text;
    line->protocol = protocol != NULL ? protocol->name : NULL;
    line->route = session_server_of(conn)->route;
    if (conn->outgoing && conn->session != NULL) /* none once the connection has been closed and
                                                  * lingers */
        line->upstream = session_target_of(conn->session)->text;
    if (conn->session != NULL)
        stream_of(conn)->backends->describe(conn, line);
}

static bool session_keepalive(struct fb_conn *conn)
{
    return stream_of(conn)->backends->keepalive(conn);
}

static void session_connect_again(struct fb_conn *conn)
{
    stream_of(conn)->backends->connect_again(conn);
}

static void session_connect_failed(struct fb_conn *conn, int error, enum io_step step)
{
    stream_of(conn)->backends->connect_failed(conn, error, step);
}

const struct conn_ops session_conn_ops = {
    .opened = session_opened,
    .data = session_data,
    .eof = session_eof,
    .writable = session_writable,
    .output_limit = session_output_limit,
    .unwritable = session_unwritable,
    .expired = session_expired,
    .closed = session_closed,
    .keepalive = session_keepalive,
    .connect_again = session_connect_again,
    .connect_failed = session_connect_failed,
    .first_byte = session_call_first_byte,
    .failed = session_failed,
    .describe = session_describe,
};

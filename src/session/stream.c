/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of a worker: set up, given the protocols' states, and checked. Responsible for the
 * slabs of states, and for the stand-in server of the worker's own connections. Never moves a
 * state: the address holds until the connection's end. */
#include "session/stream.h"

#include "base/compiler.h"
#include "os/memory.h"
#include "session/idle.h"
#include "session/record.h"
#include "session/secure.h"
#include "session/session.h"
#include "session/use.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

struct stream_own {
    struct binding binding;
    struct server server;
};

struct binding *stream_own_binding(struct stream *stream, const struct server *server)
{
    struct stream_own *own = stream->slabs[server->protocol_index].own;

    if (own != NULL)
        return &own->binding;
    own = memory_alloc(stream->net.memory, sizeof(*own));
    if (own == NULL)
        return NULL;
    *own = (struct stream_own) { .binding.kind = BINDING_KIND, .server = *server };
    own->server.protocol_conf = NULL;
    own->server.route = NULL;
    own->binding.server = &own->server;
    stream->slabs[server->protocol_index].own = own;
    return &own->binding;
}

int stream_init(struct stream *stream, const struct net_options *options, struct shared *shared,
    const struct session_backends *backends, const struct address_block *debug, unsigned debug_n)
{
    *stream = (struct stream) {
        .backends = backends, .shared = shared, .debug = debug, .debug_n = debug_n
    };
    TAILQ_INIT(&stream->keepalive);
    TAILQ_INIT(&stream->own);
    TAILQ_INIT(&stream->reads);
    RB_INIT(&stream->trunks);
    RB_INIT(&stream->named);
    if (net_init(&stream->net, options) == -1)
        return -1;
    spares_init(&stream->clients, stream->net.memory, sizeof(struct session_client));
    spares_init(&stream->outgoing, stream->net.memory, sizeof(struct session_outgoing));
    spares_init(&stream->uses, stream->net.memory, sizeof(struct session_use));
    spares_init(&stream->records, stream->net.memory, sizeof(struct session_record));
    spares_init(&stream->tries, stream->net.memory, backends->tries_size);
    spares_init(&stream->ended_tries, stream->net.memory, backends->try_size);
    return 0;
}

void stream_done(struct stream *stream)
{
    assert(TAILQ_EMPTY(&stream->keepalive) && RB_EMPTY(&stream->named));
    assert(TAILQ_EMPTY(&stream->reads) && TAILQ_EMPTY(&stream->own));
    assert(RB_EMPTY(&stream->trunks));
    if (stream->reads_next != NULL)
        source_close(&stream->net.loop, stream->reads_next, false);
    spares_done(&stream->clients);
    spares_done(&stream->outgoing);
    spares_done(&stream->uses);
    spares_done(&stream->records);
    spares_done(&stream->tries);
    spares_done(&stream->ended_tries);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++) {
        memory_release(stream->net.memory, stream->slabs[i].own);
        if (stream->slabs[i].base != NULL)
            munmap(stream->slabs[i].base, stream->slabs[i].size);
    }
    net_done(&stream->net);
}

void *stream_state_at(const struct fb_conn *conn, const struct server *server)
{
    struct stream *stream = stream_of(conn);
    const struct stream_slab *slab = &stream->slabs[server->protocol_index];

    if (slab->base == NULL)
        return NULL;
    return slab->base + slab->stride * source_index(&stream->net.loop.sources, &conn->source);
}

COLD bool stream_map_slab(struct stream *stream, struct stream_slab *slab, size_t state)
{
    size_t unit = state <= 8 ? 8 : 16; /* no type of 8 bytes has to be aligned to more */

    slab->stride = (state + unit - 1) & ~(unit - 1);
    slab->size = slab->stride * stream->net.loop.sources.n;
    slab->base = os_memory_reserve(slab->size);
    return slab->base != NULL;
}

/* ---- Invariants, for tests and debug builds ---- */

static void check_links(const struct fb_conn *conn, const struct session_conn *session)
{
    const struct session_outgoing *child;

    CHECK_KIND(session, SESSION_CONN_KIND);
    assert(session->conn == conn);
    LIST_FOREACH (child, &session->children, sibling) {
        CHECK_KIND(&child->session, SESSION_CONN_KIND);
        assert(session_parent_of(&child->session) == session && child->session.conn->outgoing);
        assert(child->session.conn->session == &child->session);
    }
    assert(session->is_outgoing == conn->outgoing);
    assert(!session->is_child || conn->outgoing);
    assert(!conn->outgoing || session->ops != NULL);
    assert(!conn->outgoing || session_reuse_of(session) == NULL ||
           session_reuse_of(session)->session == session);
    assert(!session->waits ||
           (session_trunk_of(session) != NULL &&
               (conn->session_phase == SESSION_NEW || conn->session_phase == SESSION_SECURING)));
}

static void check_use(const struct session_conn *session)
{
    const struct session_use *use = session->use;
    const struct fb_conn *conn = session->conn;

    CHECK_KIND(use, SESSION_USE_KIND);
    assert(use->session == session && !session_is_keepalive(conn));
    assert(use->name == 0 || session_name_was_given(stream_of(conn), use->name));
    assert(use->name != 0 || use->unanswered == 0);
    assert(use->frame.most > 0 || !timer_is_set(&use->frame.timer));
    assert(use->receive == NULL || conn->ops != &session_conn_ops);
}

static void check_kept(const struct fb_conn *conn, const struct session_conn *session)
{
    assert(conn->outgoing && session != NULL);
    assert(!session->is_child && LIST_EMPTY(&session->children));
    assert(session->use == NULL && session->known == NULL && conn->state == NULL);
    assert(!conn_is_active(conn) || conn->limited);
}

static void check_session_conn(const struct fb_conn *conn)
{
    const struct session_conn *session = conn->session;

    assert(conn->session_phase < SESSION_PHASES);
    stream_of(conn)->backends->check_conn(conn);
    if (session != NULL)
        check_links(conn, session);
    if (session != NULL && session->use != NULL)
        check_use(session);
    if (session != NULL && session_own_record(session) != NULL)
        CHECK_KIND(session_own_record(session), SESSION_RECORD_KIND);
    if (!conn_is_owned(conn)) {
        assert(session == NULL && conn->session_phase == SESSION_ENDED);
        return;
    }
    assert(session_is_usable(conn) || session_is_keepalive(conn));
    CHECK_KIND(session_binding_of(conn), BINDING_KIND);
    if (conn->session_phase == SESSION_KEEPALIVE)
        check_kept(conn, session);
    else if (conn->outgoing)
        assert(session != NULL && session->is_child != session->is_own &&
               session_target_of(session) != NULL);
    if (conn->session_phase == SESSION_HEADER && conn_is_active(conn))
        assert(conn->limited && conn->ops != &session_conn_ops && conn->state == NULL);
    if (conn->session_phase == SESSION_TLS && conn_is_active(conn)) {
        assert(conn->limited && conn->ops != &session_conn_ops && conn->state != NULL);
        assert(!conn->source.layered && !conn->idle && conn->pipe == NULL);
    }
    if (conn->session_phase == SESSION_PREREAD && conn_is_active(conn))
        assert(conn->limited && conn->state == NULL && session_record_of(conn)->parts != NULL);
    if (session_is_securing(conn)) {
        assert(session_secure_of(conn)->core.conn == conn && conn->pipe == NULL);
        assert(!conn_is_active(conn) || session_secure_of(conn)->awaits ||
               (conn->limited && !conn->source.layered));
        assert(session_secure_of(conn)->out != NULL || session_secure_of(conn)->unsent == 0);
    }
    if (conn->session_phase == SESSION_AWAITED && conn_is_active(conn) && conn->pipe == NULL)
        assert(conn->limited == (conn->read != CONN_READ_STOPPED));
    if (conn->phase == CONN_OPEN && conn->session_phase == SESSION_NEW)
        assert(conn->pipe != NULL); /* piped before the connect: `opened` is not called */
}

void session_check_all(const struct stream *stream)
{
    const struct session_outgoing *kept;
    struct fb_conn *conn;
    uint32_t index = 0, keepalive_n = 0, idle_n = 0, reserved = 0;

    net_check(&stream->net);
    while ((conn = net_next_conn(&stream->net, &index)) != NULL) {
        check_session_conn(conn);
        keepalive_n += session_is_keepalive(conn);
        idle_n += conn->idle;
        reserved += conn_is_owned(conn) && session_keeps_slot(conn);
    }
    TAILQ_FOREACH (kept, &stream->keepalive, among) {
        CHECK_KIND(&kept->session, SESSION_CONN_KIND);
        assert(session_is_keepalive(kept->session.conn) && keepalive_n > 0);
        keepalive_n--;
    }
    assert(keepalive_n == 0);
    stream->backends->check(stream);
    spares_check(&stream->clients);
    spares_check(&stream->outgoing);
    spares_check(&stream->uses);
    spares_check(&stream->records);
    spares_check(&stream->tries);
    spares_check(&stream->ended_tries);
    assert(idle_n == stream->idle_n && reserved == stream->net.reserved);
    idle_check(stream);
    assert(stream->draining || !timer_is_set(&stream->drain));
}

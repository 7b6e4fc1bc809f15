/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers that a worker has, and no session of a client: what stands for their
 * server, and whether they keep a worker that drains. Never connects. */
#include "session/conn.h"
#include "session/session.h"

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

void stream_own_free(struct stream *stream)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        memory_release(stream->net.memory, stream->slabs[i].own);
}

/* Returns how many connections there are because of this one, itself among them; 0: one of them has
 * to come to an end by itself. */
static uint32_t count_family(const struct session_conn *session)
{
    const struct session_outgoing *child;
    uint32_t all = 1, n;

    if (conn_is_active(session->conn) && session->conn->phase == CONN_OPEN &&
        SESSION_HAS(session->ops, draining))
        return 0;
    LIST_FOREACH (child, &session->children, sibling) {
        n = count_family(&child->session);
        if (n == 0)
            return 0;
        all += n;
    }
    return all;
}

bool stream_is_drained(const struct stream *stream)
{
    const struct session_outgoing *own;
    uint32_t all = 0, n;

    if (stream->net.client_n > 0)
        return false;
    TAILQ_FOREACH (own, &stream->own, among) {
        n = count_family(&own->session);
        if (n == 0)
            return false;
        all += n;
    }
    return all == stream->net.connection_n;
}

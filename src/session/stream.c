/* SPDX-License-Identifier: BSD-2-Clause */
/* The sessions of a worker: set up, and given the protocols' states. Responsible for the slabs of
 * states, and for the stand-in server of the worker's own connections. Never moves a state: the
 * address holds until the connection's end. */
#include "session/stream.h"

#include "base/compiler.h"
#include "os/memory.h"
#include "session/record.h"
#include "session/use.h"

#include <assert.h>
#include <errno.h>
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

static void free_own_bindings(struct stream *stream)
{
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        memory_release(stream->net.memory, stream->slabs[i].own);
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
    free_own_bindings(stream);
    if (stream->reads_next != NULL)
        source_close(&stream->net.loop, stream->reads_next, false);
    spares_done(&stream->clients);
    spares_done(&stream->outgoing);
    spares_done(&stream->uses);
    spares_done(&stream->records);
    spares_done(&stream->tries);
    spares_done(&stream->ended_tries);
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (stream->slabs[i].base != NULL)
            munmap(stream->slabs[i].base, stream->slabs[i].size);
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

/* Maps the states of a protocol; false without memory. */
static COLD bool map_slab(struct stream *stream, struct stream_slab *slab, size_t state)
{
    size_t unit = state <= 8 ? 8 : 16; /* no type of 8 bytes has to be aligned to more */

    slab->stride = (state + unit - 1) & ~(unit - 1);
    slab->size = slab->stride * stream->net.loop.sources.n;
    slab->base = os_memory_reserve(slab->size);
    return slab->base != NULL;
}

bool stream_alloc_state(struct fb_conn *conn, const struct server *server)
{
    struct stream *stream = stream_of(conn);
    struct stream_slab *slab = &stream->slabs[server->protocol_index];
    size_t state = server->protocol->conn_state;

    assert(server->protocol_index < STREAM_PROTOCOLS_MAX && conn->state == NULL);
    if (state == 0)
        return true;
    if (unlikely(slab->base == NULL) && !map_slab(stream, slab, state))
        return false;
    conn->state =
        slab->base + slab->stride * source_index(&stream->net.loop.sources, &conn->source);
    memset(conn->state, 0, slab->stride);
    return true;
}

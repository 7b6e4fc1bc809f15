/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of connections with TLS, and the operations that no record goes through. */
#include "tls/layer.h"

#include "os/memory.h"
#include "tls/link.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct io_result end_layer_half(struct source *source)
{
    return layer_lower(layer_conn(source))->shutdown(source);
}

static struct io_result layer_connected(struct source *source)
{
    return layer_lower(layer_conn(source))->connected(source);
}

static struct io_result layer_ended(const struct source *source)
{
    const struct fb_conn *conn = layer_conn(source);
    const struct layer *layer = layer_of(conn);

    if (layer->phase == LAYER_CLOSED)
        return (struct io_result) { .status = IO_EOF };
    if (layer->phase == LAYER_FAILED)
        return (struct io_result) { .status = IO_FAILED, .error = EPROTO };
    if (layer_has_more(conn))
        return (struct io_result) { .status = IO_AGAIN_READ };
    return layer_lower(conn)->ended(source);
}

static int layer_name(const struct source *source, struct sockaddr *address, socklen_t *length)
{
    return layer_lower(layer_conn(source))->name(source, address, length);
}

static size_t layer_queued(const struct source *source)
{
    const struct fb_conn *conn = layer_conn(source);
    const struct chunk *held = layer_of(conn)->held;

    return (held != NULL ? chunk_length(held) : 0) + layer_lower(conn)->queued(source);
}

static size_t layer_pending(const struct source *source)
{
    const struct fb_conn *conn = layer_conn(source);

    return layer_of(conn)->phase != LAYER_OPEN || layer_has_more(conn);
}

static void wipe_layer(struct layer *layer)
{
    explicit_bzero(layer, sizeof(*layer));
}

static void move_layer(struct source *from, struct source *to)
{
    struct fb_conn *conn = layer_conn(from);
    struct layer *layer = layer_of(conn);

    assert(!to->layered && to->io == layer_lower(conn));
    to->io = from->io;
    to->layered = true;
    to->held = from->held;
    to->partial = from->partial;
    *layer_of(layer_conn(to)) = *layer;
    wipe_layer(layer);
    from->io = layer_lower(conn);
    from->layered = from->held = from->partial = false;
}

static void leave_layer(struct source *source)
{
    struct fb_conn *conn = layer_conn(source);
    struct layer *layer = layer_of(conn);

    layer_end_tickets(conn);
    if (layer->unread != NULL)
        chunk_free(&conn->net->chunks, layer->unread);
    if (layer->held != NULL)
        chunk_free(&conn->net->chunks, layer->held);
    wipe_layer(layer);
    source->io = layer_lower(conn);
    source->layered = source->held = source->partial = false;
}

/* Held output has its last chance: an alert, mostly. The peer is not told of an end: output may
 * have been dropped, and would look whole. */
static void close_layer(struct source *source, bool reset)
{
    if (!reset && source->held)
        layer_flush(source, false);
    leave_layer(source);
    source->io->close(source, reset);
}

#define OPERATIONS                                                                                 \
    .recv = layer_recv, .flush = layer_flush, .connected = layer_connected, .ended = layer_ended,  \
    .name = layer_name, .queued = layer_queued, .shutdown = end_layer_half,                        \
    .pending = layer_pending, .move = move_layer, .leave = leave_layer, .close = close_layer

static const struct io_ops offloaded_ops = {
    OPERATIONS,
    .send = layer_kernel_send,
    .sendfile = layer_kernel_sendfile,
    .splice_out = layer_kernel_splice,
};

static bool offload_layer(struct source *source)
{
    struct fb_conn *conn = layer_conn(source);
    bool may = layer_kernel_take(conn);

    if (layer_of(conn)->offload == LAYER_OFFLOADED)
        source->io = &offloaded_ops;
    return may;
}

static const struct io_ops layer_ops = {
    OPERATIONS,
    .send = layer_send,
    .sendfile = layer_sendfile,
    .offload = offload_layer,
};

void layer_allow_offload(struct fb_conn *conn)
{
    struct layer *layer = layer_of(conn);

    assert(layer->offload == LAYER_SEALS);
    layer->offload = LAYER_MAY;
}

int layer_init(struct net *net)
{
    size_t size = net->loop.sources.n * sizeof(struct layer);
    struct layers *layers;

    assert(net->layers == NULL);
    layers = os_memory_reserve(sizeof(*layers));
    if (layers == NULL)
        return -1;
    layers->slots_size = size;
    layers->slots = os_memory_reserve(size);
    layers->ciphers = layers->slots != NULL ? ciphers_create() : NULL;
    net->layers = layers;
    if (layers->ciphers != NULL)
        return 0;
    layer_done(net);
    return -1;
}

void layer_done(struct net *net)
{
    struct layers *layers = net->layers;

    if (layers == NULL)
        return;
    if (layers->ciphers != NULL)
        ciphers_destroy(layers->ciphers);
    if (layers->slots != NULL)
        munmap(layers->slots, layers->slots_size);
    munmap(layers, sizeof(*layers));
    net->layers = NULL;
}

void layer_use_link(struct net *net, struct tls_link *link)
{
    assert(net->layers != NULL);
    net->layers->link = link;
}

/* Makes the keys of TLS 1.3, whose engine hands over secrets; -1: the library failed. */
static int expand_secrets(struct ciphers *ciphers, struct layer *layer)
{
    if (layer->suite->version != TLS_1_3)
        return 0;
    if (tls_keys_expand(ciphers, &layer->in, layer->suite) == -1)
        return -1;
    return tls_keys_expand(ciphers, &layer->out, layer->suite);
}

bool layer_is_truncated(const struct fb_conn *conn)
{
    return conn->source.layered && layer_of(conn)->truncated;
}

int layer_begin(struct fb_conn *conn, const struct tls_session *session, fb_bytes rest)
{
    struct layer *layer = &conn->net->layers->slots[conn_slot(conn) - 1];
    const struct tls_suite *suite = tls_suite_find(session->suite);
    struct event *reading = &conn->source.events[EVENT_READ];

    assert(!conn->source.layered && conn->source.io == layer_lower(conn));
    assert(suite != NULL && suite->version == session->version);
    assert(session->plain_most > 0 && session->plain_most <= TLS_PLAIN_MOST);
    assert(conn->out == NULL && conn->net->borrower != conn && conn_is_active(conn));
    assert(layer->suite == NULL && layer->unread == NULL);
    assert(conn->net->lent.n == 0 && conn->pipe == NULL); /* the rest of lent input would be data */
    *layer = (struct layer) {
        .in = session->in, .out = session->out, .suite = suite, .plain_most = session->plain_most
    };
    conn->source.layered = true;
    if (expand_secrets(conn->net->layers->ciphers, layer) == -1 ||
        (rest.n > 0 && layer_hold(conn, rest.p, rest.n) == -1)) {
        conn->source.layered = false;
        wipe_layer(layer);
        return -1;
    }
    layer->tickets = rest.n > 0 && !conn->outgoing && suite->version == TLS_1_3;
    layer->awaits = conn->net->layers->link != NULL ? session->awaits_tickets : 0;
    layer->unread = conn->in;
    conn->in = NULL;
    if (layer->unread != NULL)
        reading->ready = true; /* an event for what lies here has passed */
    layer->more = reading->ready;
    conn->source.io = &layer_ops;
    conn->source.partial = layer->unread != NULL;
    conn->redeliver = 0;
    conn_count(conn);
    conn_update_reading(conn);
    if (conn->source.held)
        conn_mark_dirty(conn);
    return 0;
}

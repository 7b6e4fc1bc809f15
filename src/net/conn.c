/* SPDX-License-Identifier: BSD-2-Clause */
/* The slots of connections, and what the loop runs when something happens on one: input is given to
 * the owner, output goes on, a timer has expired.
 *
 * Responsible for running the owner's callbacks and for the flush behind each. Never changes
 * buffers itself. Invariant: lent input stays valid until the flush behind its callback has
 * ended. */
#include "net/conn_private.h"

#include <string.h>

/* Every idle connection costs one slot and its protocol's state, and nothing else. */
static_assert(sizeof(struct fb_conn) <= 248, "an idle connection has become dearer");

/* Receives after which a connection with endless input gives the others their turn. */
#define RECEIVES_A_TURN 16

/* Gives input to the owner and flushes while it is valid; false when the connection has gone. */
static bool deliver(struct fb_conn *conn, bool last, fb_bytes in, struct chunk *chunk)
{
    struct net *net = conn->net;
    uint32_t generation = conn->source.generation;
    size_t used = in.n;

    assert(conn->owner_knows && net->lent.n == 0);
    net->lent = in;
    if (last) {
        conn->ops->eof(conn, in);
    } else {
        conn_note_moved(conn);
        used = conn->ops->data(conn, in);
    }
    assert(used <= in.n);
    if (used < in.n && conn->phase == CONN_KEEPING) /* the next owner would be given the rest */
        conn_set_phase(conn, CONN_CLOSING);
    if (net_is_dirty(net))
        net_flush(net);
    net->lent = (fb_bytes) { NULL, 0 };

    if (conn->source.generation != generation || !conn_is_owned(conn)) {
        if (chunk != NULL)
            chunk_free(&net->chunks, chunk);
        return conn->source.generation == generation;
    }
    if (used < in.n || chunk != NULL)
        conn_keep_input(conn, in, used, chunk);
    return true;
}

/* Whether unconsumed input is to be offered without more behind it. */
static bool is_due_again(const struct fb_conn *conn)
{
    return conn->redeliver && conn->in != NULL;
}

/* Receives and delivers until there is no more, or others are to have their turn; false when the
 * connection has gone. */
static bool read_input(struct fb_conn *conn)
{
    const struct event *reading = &conn->source.events[EVENT_READ];

    for (int i = 0; i < RECEIVES_A_TURN && conn_may_read(conn); i++) {
        enum conn_input input;
        struct chunk *chunk;
        fb_bytes in;

        if (!reading->ready && !is_due_again(conn))
            break;
        if (conn->pipe != NULL && !is_due_again(conn) && conn_splice_input(conn))
            continue;
        input = conn_receive(conn, &in, &chunk);
        if (input != CONN_INPUT_NONE && !deliver(conn, input == CONN_INPUT_END, in, chunk))
            return false;
    }
    return true;
}

static void open_conn(struct fb_conn *conn)
{
    conn_set_phase(conn, CONN_OPEN);
    conn->owner_knows = 1;
    conn->opening = 1;
    conn->ops->opened(conn);
    conn_update_reading(conn);
}

/* The connection that has been opened goes on: its deadline counts from now on. */
static void rest_opened(struct fb_conn *conn)
{
    conn->opening = 0;
    if (conn->limited)
        conn_deadline_enter(conn);
}

static void run_read(struct loop *loop, struct source *source)
{
    struct fb_conn *conn = container_of(source, struct fb_conn, source);
    struct event *reading = &source->events[EVENT_READ];
    struct net *net = conn->net;

    assert(conn->phase != CONN_FREE && !net->flushing);
    if (conn->phase == CONN_OPENING)
        open_conn(conn);
    else if (conn->phase == CONN_LINGERING)
        conn_discard_input(conn);
    else if (!read_input(conn))
        return;
    if (net_is_dirty(net)) {
        uint32_t generation = source->generation;

        net_flush(net);
        if (source->generation != generation)
            return;
    }
    if (conn->opening)
        rest_opened(conn);
    if (reading->ready && reading->armed)
        loop_post(loop, reading, QUEUE_NEXT);
}

static void run_write(struct loop *loop, struct source *source)
{
    struct fb_conn *conn = container_of(source, struct fb_conn, source);
    struct net *net = conn->net;

    (void)loop;
    conn_flush(conn);
    net_flush(net);
}

static const struct source_ops conn_source_ops = {
    .run = { [EVENT_READ] = run_read, [EVENT_WRITE] = run_write },
};

struct fb_conn *conn_take_slot(
    struct net *net, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct loop *loop = &net->loop;
    struct source *source;
    struct fb_conn *conn;

    assert(net->connection_n <= net->connections_max);
    if (net->connection_n == net->connections_max)
        return NULL;
    source = source_get(&loop->sources);
    if (source == NULL)
        return NULL;

    conn = container_of(source, struct fb_conn, source);
    assert(conn->phase == CONN_FREE && conn->in == NULL && conn->out == NULL);
    source->ops = &conn_source_ops;
    source->io = loop->mechanism->io;
    source->io_state = loop->mechanism_state;
    conn->net = net;
    conn->ops = ops;
    conn->owner = owner;
    conn->number = ++net->last_number;
    conn_peer_set(&conn->peer, peer);
    net->connection_n++;
    return conn;
}

struct fb_conn *conn_create(
    struct net *net, int fd, const struct sockaddr *peer, const struct conn_ops *ops, void *owner)
{
    struct fb_conn *conn = conn_take_slot(net, peer, ops, owner);

    assert(fd >= 0);
    if (conn == NULL)
        return NULL;
    conn->source.fd = fd;
    net->client_n++;
    counters_add(net->counters, COUNTER_ACTIVE, 1);
    conn_establish(conn);
    return conn;
}

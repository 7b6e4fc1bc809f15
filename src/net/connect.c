/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that we make, and what they have in common with those that are accepted. */
#include "net/conn_private.h"

void fb_conn_established(struct fb_conn *conn)
{
    conn->connecting = 0;
    conn->source.events[FB_WRITE].ready = true; /* a new socket takes output */
    fb_loop_post(&conn->net->loop, &conn->source.events[FB_READ], FB_QUEUE_NORMAL);
}

void fb_conn_refused(struct fb_conn *conn, int error)
{
    fb_conn_log(conn, FB_ERROR, error, "connect() failed");
    fb_conn_fail(conn, fb_conn_reason(error));
}

struct fb_conn *fb_conn_connect(struct fb_net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, const struct fb_conn_ops *ops, void *owner,
    void *side)
{
    struct fb_conn *conn = fb_conn_take(net, address, ops, owner);
    struct fb_io_result result;

    if (conn == NULL)
        return NULL;
    conn->outgoing = 1;
    conn->side = side;
    if (client != NULL) {
        conn->number = client->number;
        conn->debug = client->debug;
    }
    result = conn->source.io->connect(&conn->source, address, length);
    switch (result.status) {
    case FB_IO_DONE:
        fb_conn_established(conn);
        break;
    case FB_IO_AGAIN_WRITE:
        conn->connecting = 1;
        fb_conn_touch(conn);
        break;
    default:
        conn->connecting = 1;
        fb_conn_refused(conn, result.error);
        break;
    }
    return conn;
}

void fb_conn_reopen(struct fb_conn *conn, const struct fb_conn_ops *ops, void *owner)
{
    conn->ops = ops;
    conn->owner = owner;
    conn->opening = 1;
    conn->received = conn->sent = 0;
    fb_loop_unpost(&conn->net->loop, &conn->source.events[FB_READ]);
    fb_loop_post(&conn->net->loop, &conn->source.events[FB_READ], FB_QUEUE_NORMAL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that we make.
 *
 * Responsible for beginning a connect() and for its failure. How it ends is asked for by the flush,
 * when the socket is writable. Invariant: the owner is told `closed` of each, also when it never
 * opens. */
#include "net/conn_private.h"

void fb_conn_refused(struct fb_conn *conn, int error)
{
    assert(conn->outgoing && error != 0);
    fb_conn_log(conn, FB_ERROR, error, "connect() failed");
    fb_conn_fail(conn, conn_reason_of(error));
}

struct fb_conn *fb_conn_connect(struct fb_net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, const struct fb_conn_ops *ops, void *owner,
    void *session)
{
    struct fb_conn *conn = conn_take_slot(net, address, ops, owner);
    struct fb_io_result result;

    if (conn == NULL)
        return NULL;
    conn_set_phase(conn, CONN_CONNECTING);
    conn->outgoing = 1;
    conn->told = 1;
    conn->session = session;
    if (client != NULL) {
        conn->number = client->number;
        conn->debug = client->debug;
    }
    result = conn->source.io->connect(&conn->source, address, length);
    switch (result.status) {
    case FB_IO_DONE:
        conn_establish(conn);
        break;
    case FB_IO_AGAIN_WRITE:
        conn_mark_dirty(conn);
        break;
    default:
        fb_conn_refused(conn, result.error);
        break;
    }
    return conn;
}

void fb_conn_reopen(struct fb_conn *conn, const struct fb_conn_ops *ops, void *owner)
{
    assert(conn->outgoing && conn->in == NULL && conn->out == NULL && conn->pipe == NULL);
    conn_set_phase(conn, CONN_OPENING);
    conn->ops = ops;
    conn->owner = owner;
    conn->received = conn->sent = 0;
    fb_loop_unpost(&conn->net->loop, &conn->source.events[FB_READ]);
    fb_loop_post(&conn->net->loop, &conn->source.events[FB_READ], FB_QUEUE_NORMAL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections are made: of accepted clients, and to servers. */
#pragma once

#include "net/conn.h"

/* Stores an address, of a unix socket the family alone. */
void conn_peer_set(struct conn_peer *peer, const struct sockaddr *address);
/* Takes a slot for a client's connection, which owns `fd`; the caller opens it. NULL when
 * worker_connections are in use. */
struct fb_conn *conn_create(
    struct net *net, int fd, const struct sockaddr *peer, const struct conn_ops *ops, void *owner);
/* Connects to a server; `opened` or `closed` will follow. The log shows the number of `client`. */
struct fb_conn *conn_connect(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, socklen_t length, struct io_connect *options,
    const struct conn_ops *ops, void *owner, void *session);
/* Makes a connection without a connect(), for conn_connect_again() or conn_take_over(); NULL
 * without a free slot. The next turn after conn_connect_soon() runs `connect_again`. */
struct fb_conn *conn_connect_later(struct net *net, const struct fb_conn *client,
    const struct sockaddr *address, const struct conn_ops *ops, void *owner, void *session);
void conn_connect_soon(struct fb_conn *conn);
/* Begins the connect() of a connection that conn_lacks_descriptor(), or fails the connection. */
void conn_connect_again(struct fb_conn *conn, const struct sockaddr *address, socklen_t length,
    struct io_connect *options);
/* Gives a connection the socket of `from`, an idle connection of the keepalive pool; `from`
 * ends. */
void conn_take_over(struct fb_conn *conn, struct fb_conn *from);
/* Gives an idle connection of the keepalive pool to an owner, whose `opened` will run. */
void conn_reopen(struct fb_conn *conn, const struct conn_ops *ops, void *owner);

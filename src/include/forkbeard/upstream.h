/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers, and pipes between two connections. Part of <forkbeard/forkbeard.h>, with
 * the same rules. */
#pragma once

#include <forkbeard/protocol.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects to a server on behalf of `owner`. `opened` follows, or `closed` with the reason of a
 * failure, which the error log has, too. Output may be written at once. An idle connection, stored
 * by fb_keep() for the same target and ops, is used first. `target`, `ops` and `state` stay the
 * caller's, and must last until `closed`. A connection ends with its owner, as FB_ABORTED, and
 * `closed` is called before the owner's. Takes one of worker_connections. Returns NULL, and nothing
 * follows, when all of worker_connections are in use, or `owner` is ending. */
FB_SDK fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state);
/* Options of fb_connect_with(). A field of 0 or NULL is the default. */
#define FB_KEY_MAX 1024
typedef struct fb_connect_options {
    size_t size; /* sizeof(fb_connect_options) */

    /* The connection ends with its owner, as after fb_connect(). NULL: the connection is the
     * worker's, and lives until it ends by itself: `draining` is called as a client's, and without
     * `draining` the connection ends as FB_DRAINED when nothing else is left in a draining worker.
     * fb_conf_of() of a worker's connection is NULL. */
    fb_conn *owner;
    const struct sockaddr *address; /* to connect to where `target` is NULL; a sockaddr_un whole */
    const struct sockaddr *local;   /* to connect from; port 0: any. Needs FB_NEEDS_BIND */
    uint64_t timeout;               /* ms until established; 0: 60 s */
    uint32_t receive_buffer;        /* bytes for the kernel, which may take fewer, or double */
    uint32_t log_level;             /* fb_log_level of the line about a failure; 0: error */

    /* Up to FB_KEY_MAX bytes: a user and a database, for instance. An idle connection is reused for
     * the same target, ops, key, `local` and `receive_buffer`. */
    const void *key;
    size_t key_n;
    /* The latest call's values of the last options hold for all such connections of the worker, but
     * for queue_timeout, which is per call. */
    uint32_t limit;         /* the most connections, idle connections included; 0: any number */
    uint32_t queue;         /* most connections waiting once `limit` is reached; 0: none */
    uint64_t queue_timeout; /* ms of waiting, before `timeout` begins; 0: for ever */
    uint64_t age;           /* ms of age after which a connection is not kept; 0: any */

    uint32_t flags; /* FB_CONNECT_... */

    /* TLS with the server, by the values of the protocol's directives: `opened` runs after the
     * handshake, which has `timeout` once more, and a server that cannot be verified as they ask
     * for ends the connection as FB_TLS_FAILED. NULL: no TLS. An idle connection is reused for the
     * same values of these fields. */
    const fb_tls_profile *tls;
    /* The server's name, for its certificate and, by NAME_server_name, for the server itself, where
     * the directive NAME_name sets none: "www.example.com", an address; up to 255 bytes, and a port
     * behind a colon is left out. Variables of NAME_name are the owner's; the worker's connections
     * take this name in place of text with variables. */
    fb_bytes tls_name;
    /* Sent in plain, before the handshake: a PROXY header. All output is sent by TLS. */
    fb_bytes tls_before;
} fb_connect_options;

/* `local` may be an address of another host, such as a client: the kernel has to be set up to bring
 * the answers here. Needs FB_NEEDS_TRANSPARENT; when the kernel refuses, or the system has no
 * support, the connection fails. An idle connection is reused for the same values of this flag and
 * the next. */
#define FB_CONNECT_TRANSPARENT 1u
/* The kernel asks a silent peer now and then for a sign of life. */
#define FB_CONNECT_TCP_KEEPALIVE 2u
/* `target` lasts until `closed`, as in fb_connect(), and is not copied. */
#define FB_CONNECT_LASTING 4u

/* Connects to a server as fb_connect() does, with options, lent until the call returns, as the
 * target is. `options` may be NULL: then the connection is the worker's. May be called in
 * worker_start, too. A connection waiting for a place is like one to a server that has not answered
 * yet: output may be written, and the longest wait gets the first free place, or the first
 * connection given to fb_keep(). Returns NULL, and nothing follows: when all of worker_connections
 * are in use, when the queue is full, when the owner or the worker is ending, when the key is too
 * long, when `address` cannot be connected to, or without memory. Since API 4. */
FB_SDK fb_conn *fb_connect_with(fb_worker *worker, const fb_target *target, const fb_ops *ops,
    void *state, const fb_connect_options *options);
/* Returns the errno of a failed connection to a server: of connect(), of a refused local address,
 * or of input or output; ETIMEDOUT when the time to connect has passed; EAGAIN after FB_TLS_FAILED
 * for a reason of this host, where the server is not to blame; 0 without a failure. For use in
 * `closed`. Since API 4. */
FB_SDK int fb_error_of(const fb_conn *conn);
/* Attaches a pointer to a connection to a server. The pointer stays until the connection really
 * ends, also while fb_keep() gives the connection from user to user; release(p) is then called
 * once, from the loop, after `closed`. A pointer attached before is replaced, and is the caller's
 * again. A connection that has waited may take over a place with a pointer: its own is then
 * released. `release` may not be NULL. Returns 0; or -1, and nothing has changed: in `closed`, or
 * without memory. Since API 4. */
FB_SDK int fb_attach(fb_conn *conn, void *p, void (*release)(void *p));
/* Returns the attached pointer, or NULL. Since API 4. */
FB_SDK void *fb_attached(const fb_conn *conn);
/* Makes a target of an address, in memory of fb_alloc(); a sockaddr_un is given whole. NULL when
 * the address cannot be connected to, or without memory. Since API 4. */
FB_SDK const fb_target *fb_target_from(fb_conn *conn, const struct sockaddr *address);
/* Makes a target of the text of an address, in memory of fb_alloc(). Forms are those of
 * FB_VALUE_TARGET without names, because resolving would block. NULL when the text is no address,
 * or without memory. */
FB_SDK const fb_target *fb_make_target(fb_conn *conn, const char *text);
/* Returns 1 when fb_connect() took the connection from the idle ones, else 0. The server may have
 * just closed an idle connection; a protocol then tries again. */
FB_SDK int fb_is_reused(const fb_conn *conn);
/* Ends the use of a connection to a server, and stores the connection when its output has been
 * sent: for `ms`, at least 1, the next fb_connect() of this worker with the same target and ops
 * gets the connection. `closed` follows with FB_FINISHED. The connection is closed instead of
 * stored if unconsumed input is left, if the server has ended its half, or if the owner was closed
 * earlier in the same callback. */
FB_SDK void fb_keep(fb_conn *conn, uint64_t ms);

typedef struct fb_pipe_options {
    size_t size;      /* sizeof(fb_pipe_options) */
    uint64_t timeout; /* ms without a byte moved that end both as FB_TIMED_OUT; 0: never */

    /* The most bytes per second received from the peer of `a`, and from the peer of `b`; 0: any
     * number. Each second has a budget from its beginning; input from before the pipe is moved at
     * once, and counts. Waiting for the rate is not idle time. Since API 4, as are all fields
     * below. */
    uint64_t rate_from_a, rate_from_b;
    uint32_t flags; /* FB_PIPE_... */
    /* The most bytes received at once, and held for the other peer, while copied through memory; 0:
     * the worker's own choice, which is also the maximum. */
    size_t buffer;
    /* Called once, when the first byte of b's peer has come. NULL: none; never called when `b` has
     * received any before. */
    void (*first_byte)(fb_conn *b, void *state);
} fb_pipe_options;

/* The end of either peer's half ends both connections, once all its bytes were delivered to the
 * other: the peer's own as FB_PEER_GONE, the other as FB_FINISHED. */
#define FB_PIPE_ENDS_TOGETHER 1u
/* When the connection of `b` breaks, `a` is closed as FB_FINISHED instead of reset, as if b's peer
 * had ended. */
#define FB_PIPE_B_BREAK_ENDS 2u

/* Moves the bytes received by each connection to the other, until both have ended. Unconsumed input
 * of `data` is moved first, but not the `rest` of an `eof`. The end of one peer's half ends the
 * other's. When one connection breaks, the other is reset, and ends as FB_PIPE_BROKEN: `b` at once,
 * `a` when all bytes from b's peer were delivered; a's peer has 5 seconds to take the last. From
 * now on only `closed` and `first_byte` are called. Does nothing unless the two differ, and neither
 * is in a pipe. Without memory both end as FB_NO_MEMORY. `options` may be NULL. */
FB_SDK void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options);

#ifdef __cplusplus
}
#endif

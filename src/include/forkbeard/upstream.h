/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers, and pipes between two connections. Part of <forkbeard/forkbeard.h>, whose
 * rules hold here. */
#pragma once

#include <forkbeard/protocol.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects to a server on behalf of `owner`. `opened` follows, or `closed` with the reason why
 * not, which the error log has, too. Output may be written at once. An idle connection that
 * fb_keep() has stored for the same target and ops is used first. `target`, `ops` and `state` stay
 * the caller's, and must last until `closed`, which is called before the owner's: a connection
 * ends with its owner, as FB_ABORTED. Takes one of worker_connections. Returns NULL, and nothing
 * follows, when all of them are in use, or `owner` is ending. */
FB_SDK fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state);
/* Options of fb_connect_with(). A field that is 0 or NULL is the default. */
#define FB_KEY_MAX 1024
typedef struct fb_connect_options {
    size_t size; /* sizeof(fb_connect_options) */

    /* The connection ends with this one, as those of fb_connect() do. NULL: it is the worker's. It
     * lives until it ends by itself, its `draining` is called as a client's, and one without that
     * callback ends as FB_DRAINED when a worker that drains has nothing else left. fb_conf_of() of
     * a worker's connection is NULL. */
    fb_conn *owner;
    const struct sockaddr *address; /* to connect to where `target` is NULL; a sockaddr_un whole */
    const struct sockaddr *local;   /* to connect from; port 0: any. Needs FB_NEEDS_BIND */
    uint64_t timeout;               /* ms until it is established; 0: 60 s */
    uint32_t receive_buffer;        /* bytes of the kernel's; it may take less, or double it */
    uint32_t log_level;             /* fb_log_level of the line about a failure; 0: error */

    /* Up to FB_KEY_MAX bytes: a user and a database, for instance. An idle connection is reused
     * where target, ops, key, `local` and `receive_buffer` are the same. */
    const void *key;
    size_t key_n;
    /* The latest call's values of the last options hold for all such connections of the worker, but
     * for queue_timeout, which is the call's own. */
    uint32_t limit;         /* how many there may be, idle ones included; 0: any number */
    uint32_t queue;         /* how many may wait for one where `limit` is reached; 0: none */
    uint64_t queue_timeout; /* ms of waiting, before `timeout` begins; 0: for ever */
    uint64_t age;           /* ms of age, from which on a connection is not kept; 0: any */

    uint32_t flags; /* FB_CONNECT_... */
} fb_connect_options;

/* `local` may be an address of another host, that of a client: the kernel has to be set up to bring
 * the answers here. Needs FB_NEEDS_TRANSPARENT; where it is refused, or the system cannot, the
 * connection fails. An idle connection is reused where this and the next are the same, too. */
#define FB_CONNECT_TRANSPARENT 1u
/* The kernel asks a silent peer now and then whether it is still there. */
#define FB_CONNECT_TCP_KEEPALIVE 2u
/* `target` lasts until `closed`, as in fb_connect(): the text is not copied. */
#define FB_CONNECT_LASTING 4u

/* Connects to a server as fb_connect() does, with options, which are lent as the target is, until
 * the call returns. `options` may be NULL: then the connection is the worker's. It can be called in
 * worker_start, too. A connection that waits for another's place is like one whose server has not
 * answered yet: output may be written, and whoever began to wait first gets the first place, or the
 * first connection that fb_keep() is called for. Returns NULL, and nothing follows: when all of
 * worker_connections are in use, when the queue is full, when the owner or the worker is ending,
 * when the key is too long, when `address` is none to connect to, or without memory.
 * Since API 4. */
FB_SDK fb_conn *fb_connect_with(fb_worker *worker, const fb_target *target, const fb_ops *ops,
    void *state, const fb_connect_options *options);
/* Returns the errno with which a connection to a server has failed: its connect(), a local address
 * that was refused, or an input or output; ETIMEDOUT where the time for the first has passed. 0
 * where none has. It is of use in `closed`. Since API 4. */
FB_SDK int fb_error_of(const fb_conn *conn);
/* Attaches a pointer to a connection to a server. It stays until the connection really ends, when
 * fb_keep() has given the connection from user to user meanwhile; release(p) is then called once,
 * from the loop, after `closed`. A pointer that was attached before is replaced, and is the
 * caller's again; one of a connection that has waited is released when the one whose place it takes
 * has another. `release` may not be NULL. Returns 0; or -1, and nothing has changed: in `closed`,
 * or without memory. Since API 4. */
FB_SDK int fb_attach(fb_conn *conn, void *p, void (*release)(void *p));
/* Returns the pointer that is attached, or NULL. Since API 4. */
FB_SDK void *fb_attached(const fb_conn *conn);
/* Makes a target of an address, in memory of fb_alloc(); a sockaddr_un is given whole. NULL when it
 * is none to connect to, or without memory. Since API 4. */
FB_SDK const fb_target *fb_target_from(fb_conn *conn, const struct sockaddr *address);
/* Makes a target of the text of an address, in memory of fb_alloc(). Forms are those of
 * FB_VALUE_TARGET without names, because to resolve one would block. NULL when the text is no
 * address, or without memory. */
FB_SDK const fb_target *fb_make_target(fb_conn *conn, const char *text);
/* Returns 1 when fb_connect() has taken the connection from the idle ones, else 0. The server may
 * have just closed such a connection; a protocol then tries another one. */
FB_SDK int fb_is_reused(const fb_conn *conn);
/* Ends the use of a connection to a server, and stores the connection when its output has been
 * sent: for `ms`, at least 1, the next fb_connect() of this worker with the same target and ops
 * gets it. `closed` follows with FB_FINISHED. The connection is closed instead of stored when it
 * has unconsumed input, when the server has ended its half, or when the owner was closed earlier in
 * the same callback. */
FB_SDK void fb_keep(fb_conn *conn, uint64_t ms);

typedef struct fb_pipe_options {
    size_t size;      /* sizeof(fb_pipe_options) */
    uint64_t timeout; /* ms without a byte moved, after which both end as FB_TIMED_OUT; 0: never */

    /* Bytes a second that are received from the peer of `a`, and from that of `b`; 0: any. A pipe
     * has received at most as many for each second that has begun, but for input from before it,
     * which is moved at once and counts. To wait for the rate is no time without a byte moved.
     * These and all that follow: since API 4. */
    uint64_t rate_from_a, rate_from_b;
    uint32_t flags; /* FB_PIPE_... */
    /* Most bytes that are received at once, and held for the other peer, while they are copied
     * through memory; 0: the worker's own choice, which is the most that there may be. */
    size_t buffer;
    /* Called once, when the first byte of b's peer has come. NULL: none; never called when `b` has
     * received any before. */
    void (*first_byte)(fb_conn *b, void *state);
} fb_pipe_options;

/* The end of either peer's half ends both connections, once what that peer has sent was delivered
 * to the other: the peer's own as FB_PEER_GONE, the other as FB_FINISHED. */
#define FB_PIPE_ENDS_TOGETHER 1u
/* When the connection of `b` breaks, `a` is closed as if b's peer had ended, in place of a reset:
 * it ends as FB_FINISHED. */
#define FB_PIPE_B_BREAK_ENDS 2u

/* Moves the bytes that each connection receives to the other, until both have ended. Unconsumed
 * input of `data` is moved first, but not the `rest` of an `eof`. The end of one peer's half ends
 * the other's; when one connection breaks, the other is reset, and ends as FB_PIPE_BROKEN: `b` at
 * once, `a` when all that had come from b's peer was delivered; for the last of it, which its
 * system has yet to take, there are 5 seconds. From now on only `closed` is called, and
 * `first_byte`. The two must differ, and neither may be in a pipe already: else nothing happens.
 * Without memory both end as FB_NO_MEMORY. `options` may be NULL. */
FB_SDK void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options);

#ifdef __cplusplus
}
#endif

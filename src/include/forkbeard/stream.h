/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol's session as stream {} knows it: variables, text with variables, what the access log
 * says of it, and the way to another server. Part of <forkbeard/forkbeard.h>, whose rules hold
 * here. All of it is since API 4.
 *
 * The calls are functions of a table, the interface "stream" of version 1, which fb_interface()
 * returns. A session is a client's connection with all that was made for it: `conn` is the client's
 * or a connection to a server that has it as its owner, and each finds the same values. A
 * connection that the worker has for itself has no session: it finds no value and can set none. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least and the greatest status of a session; 200 is that of one which has ended and has stated
 * none. */
#define FB_STATUS_LEAST 200u
#define FB_STATUS_GREATEST 599u

/* The interface "stream", version 1. Later versions of Forkbeard only append calls: one that was
 * added later may be used where `size` says that it is there. All may be called from callbacks on
 * the loop, `closed` included; none runs a callback but `value` of a variable (see
 * fb_variable_definition). */
typedef struct fb_stream {
    size_t size; /* bytes of this table */

    /* Finds the value of a variable, worked out at its first use in the session. It is lent until
     * the client's `closed` returns. Returns 0; or -1, and *value has no bytes: the variable was
     * not found in this session, or there is no memory for it. */
    int (*get)(fb_conn *conn, const fb_variable *variable, fb_bytes *value);

    /* Gives a variable a value for the rest of the session, a copy of these bytes; NULL with 0
     * bytes: an empty one. That may be a variable of the protocol's own, or one that directives may
     * define, such as `set` and `map`; none that is volatile. Returns 0; or -1, and nothing has
     * changed, for any other variable or without memory. */
    int (*set)(fb_conn *conn, const fb_variable *variable, fb_bytes value);

    /* Puts the values of its variables into a text; those that are not found add nothing. The
     * result is lent until the client's `closed` returns. Returns 0; or -1, and *out has no bytes:
     * there is no memory. */
    int (*evaluate)(fb_conn *conn, const fb_template *text, fb_bytes *out);

    /* States the outcome of the session, FB_STATUS_LEAST to FB_STATUS_GREATEST: $status in the
     * access log. The last one counts. The words are HTTP's: 200 all went well, 400 the client sent
     * nonsense, 403 it may not do that, 500 a mistake of ours, 502 a server failed, 503 there is
     * too much to do. Returns 0; or -1 for any other number, and nothing has changed. */
    int (*set_status)(fb_conn *conn, uint32_t status);
    /* Returns the status that was stated; 0: none so far. */
    uint32_t (*status)(const fb_conn *conn);

    /* Adds to the bytes that $bytes_received and $bytes_sent show of the session. They are those of
     * the client's connection: a protocol adds what it has moved for the client by other means,
     * such as a descriptor of its own. fb_received(), fb_sent() and limits do not know of it. */
    void (*count)(fb_conn *conn, uint64_t received, uint64_t sent);

    /* Hands a client over to the server that listens on this address, as if it had connected there.
     * May be called in the client's `opened` alone. When that has returned 0, and has not ended the
     * connection, `closed` is called as FB_FINISHED, which should not touch the connection any
     * more; then the session of the other server begins, with nothing of this one: its access rules
     * and limits are asked, its protocol's `opened` is called, and its access log gets a line at
     * the end; this server's gets none. Variables are worked out anew, and what this session has
     * begun has ended: timers, connections to servers, references, memory of fb_alloc(). Output
     * that was written before still leaves first. Returns 0; or -1, and nothing has changed, after
     * a line in the error log: no server listens there, `conn` is no client in its `opened`, it has
     * been handed over FB_PASSES_MAX times already, or there is no memory. */
    int (*pass)(fb_conn *conn, const fb_listener *listener);
} fb_stream;

/* The most handovers of a connection by `pass`. */
#define FB_PASSES_MAX 10u

/* Returns an interface, a constant table that begins with its size and lives as long as the module:
 * a const fb_stream for "stream", 1. Returns NULL for a name or a version that this daemon does not
 * have. May be called from worker_start on. */
FB_SDK const void *fb_interface(fb_worker *worker, const char *name, uint32_t version);

#ifdef __cplusplus
}
#endif

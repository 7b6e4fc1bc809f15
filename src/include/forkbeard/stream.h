/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol's session in stream {}: variables, text with variables, the outcome for the access
 * log, and the way to another server. Part of <forkbeard/forkbeard.h>, with the same rules. Since
 * API 4.
 *
 * The calls are functions of a table, the interface "stream" of version 1, from fb_interface(). A
 * session is a client's connection and all connections to servers with this owner: any of them may
 * be `conn`, and finds the same values. A connection of the worker has no session: it finds no
 * value and can set none. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The least and the greatest status of a session; 200 is the status of an ended session that has
 * stated none. */
#define FB_STATUS_LEAST 200u
#define FB_STATUS_GREATEST 599u

/* The interface "stream", version 1. Later versions of Forkbeard only append calls, to be used
 * where `size` includes them. All may be called from callbacks on the loop, `closed` included; none
 * runs a callback but `value` of a variable (see fb_variable_definition). */
typedef struct fb_stream {
    size_t size; /* bytes of this table */

    /* Finds the value of a variable, worked out at its first use in the session, and lent until the
     * client's `closed` returns. Returns 0; or -1, and *value has no bytes: this session has no
     * such variable, or the worker no memory. */
    int (*get)(fb_conn *conn, const fb_variable *variable, fb_bytes *value);

    /* Gives a variable a value for the rest of the session, a copy of these bytes; NULL with 0
     * bytes: an empty value. The variable may be the protocol's own, or of a kind defined by
     * directives such as `set` and `map`, but not volatile. Returns 0; or -1, and nothing has
     * changed, for any other variable or without memory. */
    int (*set)(fb_conn *conn, const fb_variable *variable, fb_bytes value);

    /* Replaces the variables in a text by their values, and missing ones by nothing. The result is
     * lent until the client's `closed` returns. Returns 0; or -1, and *out has no bytes: there is
     * no memory. */
    int (*evaluate)(fb_conn *conn, const fb_template *text, fb_bytes *out);

    /* States the outcome of the session, FB_STATUS_LEAST to FB_STATUS_GREATEST: $status in the
     * access log. The last call counts. The codes are HTTP's: 200 success, 400 nonsense from the
     * client, 403 forbidden, 500 an error of the protocol, 502 a failed server, 503 overload.
     * Returns 0; or -1 for any other number, and nothing has changed. */
    int (*set_status)(fb_conn *conn, uint32_t status);
    /* Returns the stated status; 0: none so far. */
    uint32_t (*status)(const fb_conn *conn);

    /* Adds to $bytes_received and $bytes_sent of the session, which begin with the bytes of the
     * client's connection: for bytes moved for the client by other means, such as a descriptor of
     * the protocol. fb_received(), fb_sent() and limits do not count them. */
    void (*count)(fb_conn *conn, uint64_t received, uint64_t sent);

    /* Hands a client over to the server listening on this address, as if the client had connected
     * there. May be called in the client's `opened` alone. When `opened` has returned 0, without
     * ending the connection, `closed` is called as FB_FINISHED, and should not touch the connection
     * any more. Then the session of the other server begins, independent of this session: access
     * rules and limits are asked, the protocol's `opened` is called, and the access log gets a line
     * at the end; this server's log gets none. Variables are worked out anew. Timers, connections
     * to servers, references and memory of fb_alloc() have ended. Output written before is still
     * sent first. Returns 0; or -1, and nothing has changed, after a line in the error log: no
     * server listens on the address, `conn` is no client in its `opened`, the connection was handed
     * over FB_PASSES_MAX times already, or there is no memory. */
    int (*pass)(fb_conn *conn, const fb_listener *listener);

    /* Writes the type-length-values by which a PROXY header of version 2 tells a server of the TLS
     * of the session's client: protocol of ALPN, name of the server, version, cipher, outcome of
     * the verification, common name of the client's certificate, and kinds of key and signature of
     * the own certificate; with FB_NEEDS_CERTIFICATES the client's certificate, too. Needs
     * FB_NEEDS_TLVS. Returns the bytes, at most FB_TLVS_MOST; 0: the client has no TLS. */
    uint32_t (*tlvs)(const fb_conn *conn, uint8_t *out);
} fb_stream;

/* The room that a caller of `tlvs` has. */
#define FB_TLVS_MOST 10240u

/* The most handovers of a connection by `pass`. */
#define FB_PASSES_MAX 10u

/* Returns an interface, a constant table that begins with its size and lives as long as the module:
 * a const fb_stream for "stream", 1. Returns NULL for names and versions unknown to this daemon.
 * May be called from worker_start on. */
FB_SDK const void *fb_interface(fb_worker *worker, const char *name, uint32_t version);

#ifdef __cplusplus
}
#endif

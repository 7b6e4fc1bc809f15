/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's SDK: what a protocol handler is written against.
 *
 * A protocol is a constant `fb_protocol`: a name, directives, sizes and callbacks. Forkbeard does
 * the rest: it accepts, watches, buffers, times out, limits, logs and counts.
 *
 * Three rules hold for every call:
 *  - Bytes. Input is lent until the callback returns. Output is copied, unless it lies within that
 *    input, which is then sent from where it is. It leaves in one piece after the callback.
 *  - Handles. A connection is valid from `opened` until `closed` returns, which comes exactly once.
 *  - Re-entrancy. No call runs a callback. What a call sets off, a failure too, is told later. */
#pragma once

#include <forkbeard/types.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The binary contract, and the version of this header. */
#define FB_ABI 1u
#define FB_API 1u

#if defined(__GNUC__)
#define FB_SDK __attribute__((visibility("default")))
#define FB_SDK_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define FB_SDK
#define FB_SDK_PRINTF(text, args)
#endif

/* What happens to one connection. Every callback may be NULL. `state` is the protocol's memory for
 * this connection: `conn_state` bytes, zeroed before `opened`, NULL when that is 0. */
typedef struct fb_ops {
    size_t size; /* sizeof(fb_ops) */

    /* A client is there. 0 to go on; anything else ends the connection as FB_REFUSED. */
    int (*opened)(fb_conn *conn, void *state);

    /* Bytes from the client, at least one. Returns how many were consumed, at most in.n; the rest is
     * kept and comes again with what follows, or after fb_resume(). NULL: everything is dropped. */
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);

    /* The client has ended its half; output still reaches it. `rest` is what was never consumed.
     * NULL: fb_close(). */
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);

    /* So much output had piled up (64 KiB) that input was held back; now most of it has left. */
    void (*writable)(fb_conn *conn, void *state);

    /* The last call with this connection; writing does nothing any more. */
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);
} fb_ops;

/* What a directive's value is. The value lies in the configuration at the directive's offset. */
typedef enum fb_value {
    FB_VALUE_NONE,   /* no argument, no value: its presence is what counts */
    FB_VALUE_STRING, /* const char *; it lives as long as the configuration */
    FB_VALUE_NUMBER, /* int64_t */
    FB_VALUE_SIZE,   /* int64_t, bytes: "16k" */
    FB_VALUE_MSEC,   /* int64_t, milliseconds: "1m 30s"; "off" is 0 */
    FB_VALUE_FLAG,   /* int64_t, 0 or 1: "off" or "on" */
} fb_value;

/* The directive that gives a server to this protocol. Every protocol has exactly one. */
#define FB_DIRECTIVE_HANDLER 1u

typedef struct fb_directive {
    const char *name;
    uint32_t value;  /* an fb_value */
    uint32_t flags;  /* FB_DIRECTIVE_... */
    uint32_t offset; /* of the value in the configuration, bytes */
    uint32_t reserved;
    int64_t least, greatest; /* of a number, size or time; both 0: any that is not negative */
    const char *initial;     /* as it would be written; NULL: zero */
} fb_directive;

/* A protocol. Fields are only ever appended, and `size` tells which there are. */
typedef struct fb_protocol {
    uint32_t abi;            /* FB_ABI */
    uint32_t api;            /* FB_API */
    uint32_t size;           /* sizeof(fb_protocol) */
    uint32_t directive_size; /* sizeof(fb_directive) */
    const char *name;
    const fb_directive *directives; /* allowed in `server {}` */
    uint32_t directive_n;
    uint32_t conn_state;  /* bytes of state a connection */
    uint32_t conf_state;  /* bytes of configuration a server */
    uint32_t input_limit; /* bytes of unconsumed input at which a connection ends as
                             FB_INPUT_LIMIT; 0: 65536 */
    const fb_ops *ops;
} fb_protocol;

/* The first and the directives' fields of a descriptor. */
#define FB_PROTOCOL_HEADER                                                                         \
    .abi = FB_ABI, .api = FB_API, .size = sizeof(fb_protocol),                                     \
    .directive_size = sizeof(fb_directive)
#define FB_PROTOCOL_DIRECTIVES(table)                                                              \
    .directives = (table), .directive_n = sizeof(table) / sizeof((table)[0])

/* Adds n bytes to the output. Once the connection is closing or broken it does nothing. */
FB_SDK void fb_write(fb_conn *conn, const void *p, size_t n);

/* No more `data` until fb_resume(), which has what was left unconsumed offered again. */
FB_SDK void fb_stop(fb_conn *conn);
FB_SDK void fb_resume(fb_conn *conn);

/* Sends what is still unsent, then closes; `closed` follows with FB_FINISHED. */
FB_SDK void fb_close(fb_conn *conn);
/* Drops what is unsent and resets the connection; `closed` follows with FB_ABORTED. */
FB_SDK void fb_abort(fb_conn *conn);

/* The protocol's configuration for the connection's server: conf_state bytes that live as long as
 * the connection; NULL when conf_state is 0. */
FB_SDK const void *fb_conf_of(const fb_conn *conn);

/* Milliseconds since 1970-01-01 UTC, as of the beginning of this turn of the loop. */
FB_SDK int64_t fb_wall_ms(const fb_conn *conn);

/* Counts one request served, in the daemon's statistics. */
FB_SDK void fb_count_request(fb_conn *conn);

typedef enum fb_log_level {
    FB_LOG_ALERT = 1,
    FB_LOG_ERROR = 3,
    FB_LOG_WARN = 4,
    FB_LOG_NOTICE = 5,
    FB_LOG_INFO = 6,
    FB_LOG_DEBUG = 7,
} fb_log_level;

/* A line in the error log that ends with client and server; `format` as for printf. */
FB_SDK void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);

/* The daemon's statistics over all workers, those that have ended included. */
typedef struct fb_statistics {
    size_t size;                                /* in: sizeof(fb_statistics) */
    uint64_t accepts, handled, requests;        /* since the daemon's start */
    uint64_t active, reading, writing, waiting; /* connections now */
} fb_statistics;

FB_SDK void fb_get_statistics(fb_conn *conn, fb_statistics *out);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain types of Forkbeard's SDK: handles, numbers and results; <forkbeard/forkbeard.h>
 * includes this header for protocols. Later versions only append values to enumerations, so a
 * switch over an enumeration needs a default. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FB_SDK_EXTERN extern "C"
#else
#define FB_SDK_EXTERN extern
#endif

#if defined(__GNUC__)
#define FB_SDK __attribute__((visibility("default")))
#define FB_SDK_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define FB_SDK
#define FB_SDK_PRINTF(text, args)
#endif

/* A connection. A client's handle is valid from `opened`, a server's from fb_connect(), until
 * `closed` returns. */
typedef struct fb_conn fb_conn;
/* The worker process of a callback, as seen by one protocol. The handle stays the same from
 * worker_start to the end of worker_stop, and outlives the connections. */
typedef struct fb_worker fb_worker;
/* The configuration being read; valid until the callback returns. */
typedef struct fb_conf fb_conf;
/* An address to connect to, from a directive, fb_conf_target() or fb_make_target(). */
typedef struct fb_target fb_target;
/* A descriptor watched by the worker's loop for a protocol, from fb_watch_fd() until fb_unwatch()
 * or the end of worker_stop. */
typedef struct fb_watch fb_watch;
/* A question for a name, from fb_resolve() until the answer or fb_resolve_cancel(). Since API 4. */
typedef struct fb_resolution fb_resolution;
/* A map that all workers share, from fb_conf_map(). */
typedef struct fb_map fb_map;

/* The master process, in the hooks conf_accepted and conf_gone. */
typedef struct fb_master fb_master;
/* A pool of threads of `thread_pool`, from fb_conf_pool(). */
typedef struct fb_pool fb_pool;
/* A variable of sessions, from fb_conf_variable(). Since API 4. */
typedef struct fb_variable fb_variable;
/* Text with variables, from a directive or fb_conf_template(). Since API 4. */
typedef struct fb_template fb_template;
/* A listening address of this daemon's servers, from fb_conf_listener(). Since API 4. */
typedef struct fb_listener fb_listener;
/* Servers for clients to be connected with, from fb_conf_upstream(). Since API 4. */
typedef struct fb_upstream fb_upstream;

/* What connections to servers by TLS are like, from a directive of FB_VALUE_TLS. Since API 4. */
typedef struct fb_tls_profile fb_tls_profile;
/* A check of the health of servers, from fb_conf_health_check(). Since API 4. */
typedef struct fb_health_check fb_health_check;

/* The name of a connection, from fb_ref_of(), or of a worker, from fb_worker_id(): unique for ever,
 * to be kept and sent to any worker. Only the protocol of the reference can use it, unless that
 * protocol has FB_TAKES_FOREIGN. References of further connections cannot be guessed from a known
 * one. 0 names none. */
typedef uint64_t fb_ref;

/* A span of n bytes of memory of the caller or the daemon. */
typedef struct fb_bytes {
    const uint8_t *p;
    size_t n;
} fb_bytes;

/* Why a connection ended. */
typedef enum fb_reason {
    FB_FINISHED = 1, /* fb_close() or both halves ended: the kernel has taken all output */
    FB_PEER_GONE,    /* the peer closed, and nothing was left to do */
    FB_RESET,        /* the peer broke the connection */
    FB_TIMED_OUT,    /* a timeout of the configuration, the protocol or the network */
    FB_INPUT_LIMIT,  /* unconsumed input above input_limit, or a frame above `most` */
    FB_ABORTED,      /* fb_abort(), or the end of the owner given to fb_connect() */
    FB_DRAINED,      /* the deadline of a worker that ends, or of a session_lifetime that is over */
    FB_REFUSED,      /* `opened` refused the connection, or the server the connect */
    FB_NO_MEMORY,    /* the worker had no memory for it */
    FB_IO_ERROR,     /* any other error of the connection */
    /* Since API 4 */
    FB_BAD_FRAME,    /* the length of a frame makes no sense */
    FB_OUTPUT_LIMIT, /* the protocol added output with twice output_limit unsent */
    FB_PIPE_BROKEN,  /* the other connection of the pipe broke, or was never established;
                        FB_ABORTED for protocols of API 3 and before */
    FB_TLS_FAILED,   /* a TLS handshake begun within the session failed */
    FB_TLS_TIMED_OUT /* such a handshake took too long */
} fb_reason;

/* The outcome of a message. */
typedef enum fb_outcome {
    FB_MESSAGE_HANDLED = 1, /* `message` returned 0 */
    FB_MESSAGE_DECLINED,    /* `message` is NULL, or returned another value; also in place of
                               FB_MESSAGE_BUSY for protocols of API 3 and before */
    FB_MESSAGE_UNKNOWN,     /* no such connection or worker, or an end before the answer */
    FB_MESSAGE_BUSY,        /* not delivered: the worker is flooded or short of memory; try
                               again later */
} fb_outcome;

/* The outcome of a message of a worker. Later versions only append fields. */
typedef struct fb_answer {
    uint64_t message; /* the number of the message */
    fb_ref to;        /* the connection or worker addressed */
    fb_outcome outcome;
    uint32_t left; /* answers still to come for the message; 0: this is the last */
} fb_answer;

/* The result of a call on a map. */
typedef enum fb_map_status {
    FB_MAP_OK,
    FB_MAP_ABSENT,       /* the map has no such key */
    FB_MAP_CHANGED,      /* the key does not have the expected version */
    FB_MAP_FULL,         /* the map has `capacity` keys already, or its `memory` is used up */
    FB_MAP_TOO_LARGE,    /* the key or the value is longer than the map allows */
    FB_MAP_NOT_A_NUMBER, /* the value is no int64_t, or the sum would overflow an int64_t */
    FB_MAP_MORE,         /* a walk has met no key yet: call again. Since API 4 */
} fb_map_status;

typedef struct fb_item {
    void *value;      /* in: the caller's memory for the value */
    size_t room;      /* in: bytes of that memory */
    size_t n;         /* out: bytes of the whole value; up to `room` were copied */
    uint64_t version; /* out: differs after each change of the key, a deletion included */
    uint64_t ttl;     /* out: ms until the key expires; 0: never */
} fb_item;

/* A change of a map, for `map_changed`. */
typedef enum fb_map_change {
    FB_MAP_WAS_SET = 1,
    FB_MAP_WAS_DELETED,
    FB_MAP_LOST,        /* more changes were made than could be told */
    FB_MAP_WAS_EXPIRED, /* the key expired, and was not set again */
} fb_map_change;

/* The place of a walk through a map, for fb_map_next(); all zero: at the beginning. */
typedef struct fb_map_cursor {
    uint64_t at[2]; /* the daemon's */
} fb_map_cursor;

/* Given as `ttl`: the time to live of the key does not change. */
#define FB_MAP_KEEP_TTL UINT64_MAX

/* How fb_read_file() reads, from the directive `aio`. */
typedef enum fb_aio {
    FB_AIO_OFF,     /* at once: the worker waits for the disk */
    FB_AIO_THREADS, /* on threads of `thread_pool` */
    FB_AIO_ON,      /* by the kernel where the file was opened with O_DIRECT, else on threads */
} fb_aio;

/* The outcome of a read of fb_read_file(). Later versions only append fields. */
typedef struct fb_file_read {
    uint64_t offset; /* in the file, of the first byte */
    fb_bytes bytes;  /* fewer than asked for at the end of the file; none at or behind the end */
    int error;       /* 0, or the errno of a failed read, which has no bytes */
} fb_file_read;

/* The level of a line in the error log. */
typedef enum fb_log_level {
    FB_LOG_ALERT = 1,
    FB_LOG_ERROR = 3,
    FB_LOG_WARN = 4,
    FB_LOG_NOTICE = 5,
    FB_LOG_INFO = 6,
    FB_LOG_DEBUG = 7,
} fb_log_level;

/* SPDX-License-Identifier: BSD-2-Clause */
/* The plain types of Forkbeard's SDK: handles, numbers and results. Protocols include
 * <forkbeard/forkbeard.h>, which includes this. Later versions only append values to enumerations,
 * so that a switch over one needs a default. */
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

/* A connection. The handle of a client's is valid from `opened`, that of a server's from
 * fb_connect(), until `closed` returns. */
typedef struct fb_conn fb_conn;
/* The worker process of a callback, as one protocol sees it; outlives the connections. The handle
 * stays the same from worker_start to the end of worker_stop. */
typedef struct fb_worker fb_worker;
/* The configuration that is being read; valid until the callback returns. */
typedef struct fb_conf fb_conf;
/* An address to connect to, from a directive, fb_conf_target() or fb_make_target(). */
typedef struct fb_target fb_target;
/* A descriptor that the worker's loop watches for a protocol, from fb_watch_fd() until fb_unwatch()
 * or the end of worker_stop. */
typedef struct fb_watch fb_watch;
/* A question for a name, from fb_resolve() until its answer or fb_resolve_cancel(). Since API 4. */
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
/* An address that servers of this daemon listen on, from fb_conf_listener(). Since API 4. */
typedef struct fb_listener fb_listener;
/* Servers that clients may be connected with, from fb_conf_upstream(). Since API 4. */
typedef struct fb_upstream fb_upstream;

/* A check of the health of servers, from fb_conf_health_check(). Since API 4. */
typedef struct fb_health_check fb_health_check;

/* The name of a connection, from fb_ref_of(), or of a worker, from fb_worker_id(). It may be kept
 * and sent anywhere, in any worker, and never names another connection or worker, not even after
 * the end of its own. It is good for the protocol that it is from alone, unless that has
 * FB_TAKES_FOREIGN. Who has one cannot guess another connection's. 0 names none. */
typedef uint64_t fb_ref;

/* A span of n bytes that the caller or the daemon owns. */
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
    FB_INPUT_LIMIT,  /* unconsumed input above input_limit, or a frame above its `most` */
    FB_ABORTED,      /* fb_abort(), or the end of the owner that fb_connect() was given */
    FB_DRAINED,      /* the worker ends, or its session_lifetime is over, and the deadline came */
    FB_REFUSED,      /* `opened` refused the connection, or the server the connect */
    FB_NO_MEMORY,    /* the worker had no memory for it */
    FB_IO_ERROR,     /* any other error of the connection */
    /* Since API 4 */
    FB_BAD_FRAME,    /* the length of a frame makes no sense */
    FB_OUTPUT_LIMIT, /* twice output_limit was unsent, and the protocol added to it */
    FB_PIPE_BROKEN,  /* the connection that it was piped with broke, or was never established;
                        FB_ABORTED for protocols of API 3 and before */
} fb_reason;

/* The outcome of a message. */
typedef enum fb_outcome {
    FB_MESSAGE_HANDLED = 1, /* `message` returned 0 */
    FB_MESSAGE_DECLINED,    /* `message` returned another value or is NULL; also in place of
                               FB_MESSAGE_BUSY for protocols of API 3 and before */
    FB_MESSAGE_UNKNOWN,     /* no such connection or worker, or one ended before its answer */
    FB_MESSAGE_BUSY,        /* undelivered: its worker is flooded or short of memory; try again
                               later */
} fb_outcome;

/* The outcome of a message of a worker. Later versions only append fields. */
typedef struct fb_answer {
    uint64_t message; /* the number of the message */
    fb_ref to;        /* the connection or worker addressed */
    fb_outcome outcome;
    uint32_t left; /* answers that the message still waits for; 0: no more come */
} fb_answer;

/* The result of a call on a map. */
typedef enum fb_map_status {
    FB_MAP_OK,
    FB_MAP_ABSENT,       /* the map has no such key */
    FB_MAP_CHANGED,      /* the key does not have the expected version */
    FB_MAP_FULL,         /* the map has `capacity` keys already, or its `memory` is used */
    FB_MAP_TOO_LARGE,    /* the key or the value is longer than the map allows */
    FB_MAP_NOT_A_NUMBER, /* the value is not an int64_t, or the sum would not fit into one */
    FB_MAP_MORE,         /* a walk has met no key yet: call again. Since API 4 */
} fb_map_status;

typedef struct fb_item {
    void *value;      /* in: the caller's memory for the value */
    size_t room;      /* in: bytes of that memory */
    size_t n;         /* out: bytes of the whole value, of which up to `room` were copied */
    uint64_t version; /* out: differs after each change of the key, a deletion included */
    uint64_t ttl;     /* out: ms until the key expires; 0: never */
} fb_item;

/* A change of a map, for `map_changed`. */
typedef enum fb_map_change {
    FB_MAP_WAS_SET = 1,
    FB_MAP_WAS_DELETED,
    FB_MAP_LOST,        /* more changes were made than could be told */
    FB_MAP_WAS_EXPIRED, /* the key's ttl was over, and it was not set again */
} fb_map_change;

/* The place of a walk through a map, for fb_map_next(); all zero: at the beginning. */
typedef struct fb_map_cursor {
    uint64_t at[2]; /* the daemon's */
} fb_map_cursor;

/* Given as `ttl`: the key keeps its time. */
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
    fb_bytes bytes;  /* fewer than were asked for where the file ends; none at or behind its end */
    int error;       /* 0, or the errno of a read that has failed: there are no bytes then */
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

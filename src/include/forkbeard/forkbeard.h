/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's SDK: what a protocol handler is written against.
 *
 * A protocol is a constant `fb_protocol`: a name, directives, sizes and callbacks. Forkbeard does
 * the rest: it accepts, watches, buffers, times out, limits, logs and counts.
 *
 * Three rules hold for every call:
 *  - Bytes. Input is lent until the callback returns. Output is copied, unless it lies within that
 *    input, which is then sent from where it is. It leaves in one piece after the callback.
 *  - Handles. A connection is valid from `opened` (or fb_connect()) until `closed` returns, which
 *    comes exactly once. Whoever needs one for longer keeps an fb_ref.
 *  - Re-entrancy. No call runs a callback. What a call sets off, a failure too, is told later.
 *
 * Callbacks run on the worker's one loop: none may block (fb_run() is for what does), and only they
 * may use these calls: no other thread, and nothing before the worker starts unless it says so.
 * Times are milliseconds, sizes are bytes, and strings are lent for the time of the call. */
#pragma once

#include <forkbeard/types.h>

#include <stdarg.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The binary contract, and the version of this header. */
#define FB_ABI 1u
#define FB_API 2u

#if defined(__GNUC__)
#define FB_SDK __attribute__((visibility("default")))
#define FB_SDK_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define FB_SDK
#define FB_SDK_PRINTF(text, args)
#endif

/* ---- The descriptor ---- */

/* What happens to one side of a session. Every callback may be NULL. `state` is the protocol's memory
 * for this connection: of a client's `conn_state` bytes, zeroed before `opened`, NULL when that is 0;
 * of a server's what fb_connect() was given. Callbacks are only ever appended. */
typedef struct fb_ops {
    size_t size; /* sizeof(fb_ops) */

    /* It is connected. 0 to go on; anything else ends the connection as FB_REFUSED. */
    int (*opened)(fb_conn *conn, void *state);

    /* Bytes from the peer, at least one. Returns how many were consumed, at most in.n; the rest is
     * kept and comes again with what follows, or after fb_resume(). NULL: everything is dropped. */
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);

    /* The peer has ended its half, and is not stopped; output still reaches it. `rest` is what was never consumed.
     * NULL: fb_close(). */
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);

    /* So much output had piled up (64 KiB) that input was held back; now most of it has left. */
    void (*writable)(fb_conn *conn, void *state);

    /* A timer of fb_timer() has expired, and is not set any more. */
    void (*timer)(fb_conn *conn, void *state, uint32_t id);

    /* The worker takes no more clients and ends with its last connection: bring this one to an end.
     * What is open in `deadline` ms is closed as FB_DRAINED; 0: no deadline. */
    void (*draining)(fb_conn *conn, void *state, uint64_t deadline);

    /* A message from a connection of this worker or another. 0: handled; anything else: declined. */
    int (*message)(fb_conn *conn, void *state, fb_ref from, fb_bytes message);

    /* What became of the message that fb_send_message() numbered so. */
    void (*answered)(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome);

    /* The last call with this connection; writing does nothing any more. */
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);
} fb_ops;

/* What a directive's value is. The value lies in the configuration at the directive's offset. */
typedef enum fb_value {
    FB_VALUE_NONE,   /* no argument, no value: its presence is what counts */
    FB_VALUE_STRING, /* const char *; it lives as long as the configuration */
    FB_VALUE_NUMBER, /* int64_t */
    FB_VALUE_SIZE,   /* int64_t, bytes: "16k" */
    FB_VALUE_MSEC,   /* int64_t, milliseconds: "1m 30s"; "off" is 0 where `least` is 0 */
    FB_VALUE_FLAG,   /* int64_t, 0 or 1: "off" or "on" */
    FB_VALUE_NAME,   /* int64_t, the index of a word in `names` */
    FB_VALUE_TARGET, /* const fb_target *: "10.0.0.1:80", "name:80" (resolved once, its first
                        address), "unix:/path"; it lives as long as the configuration */
    FB_VALUE_CUSTOM, /* what `set` makes of the arguments */
} fb_value;

/* The directive that gives a server to this protocol. Every protocol has exactly one. It stands in
 * `server {}` only; the others may also stand in `stream {}`, for every server in it that does not
 * say otherwise. */
#define FB_DIRECTIVE_HANDLER 1u
/* Its value, an FB_VALUE_STRING, is a path: of a file, or of a directory with all below it, which the
 * workers open after their start, to read or to write as well (to make, rename and remove, too).
 * Relative ones lie in `working_directory`. */
#define FB_DIRECTIVE_READS 2u
#define FB_DIRECTIVE_WRITES 4u

typedef struct fb_directive {
    const char *name;
    uint32_t value;           /* an fb_value */
    uint32_t flags;           /* FB_DIRECTIVE_... */
    uint32_t offset;          /* of the value in the configuration, bytes */
    uint32_t room;            /* FB_VALUE_CUSTOM: bytes of the value, to be inherited */
    int64_t least, greatest;  /* of a number, size or time; both 0: any that is not negative */
    const char *initial;      /* as it would be written; NULL: zero */
    const char *const *names; /* FB_VALUE_NAME: the words; ends with NULL */
    /* FB_VALUE_CUSTOM: with args_least to args_most arguments. 0, or -1 after fb_conf_errorf(). The
     * arguments live as long as the configuration. */
    int (*set)(fb_conf *conf, void *value, const char *const *args, uint32_t n);
    uint32_t args_least, args_most;
} fb_directive;

/* A number that every worker counts by itself and fb_metric_total() sums over all, those that have
 * ended included. */
typedef enum fb_metric_kind {
    FB_COUNTER, /* only grows */
    FB_GAUGE,   /* what is so now: ends with its worker */
} fb_metric_kind;

typedef struct fb_metric {
    const char *name;
    uint32_t kind; /* an fb_metric_kind */
    uint32_t reserved;
} fb_metric;

/* What a protocol does in workers that have started besides its connections, and the sandbox would not
 * let it do. forkbeard_module(3) says what belongs to each. */
#define FB_NEEDS_EXEC 1u    /* runs other programs */
#define FB_NEEDS_CODE 2u    /* makes memory executable: dlopen(), a compiler of its own */
#define FB_NEEDS_NAMES 4u   /* has the C library look up hosts, users or interfaces */
#define FB_NEEDS_UDP 8u     /* opens sockets of datagrams */
#define FB_NEEDS_LISTEN 16u /* opens listening sockets of its own */

/* A protocol. Fields are only ever appended, and `size` tells which there are. */
typedef struct fb_protocol {
    uint32_t abi;            /* FB_ABI */
    uint32_t api;            /* FB_API */
    uint32_t size;           /* sizeof(fb_protocol) */
    uint32_t directive_size; /* sizeof(fb_directive) */
    const char *name;        /* 1 to 31 letters, digits and "_" */
    const fb_directive *directives;
    uint32_t directive_n;
    uint32_t conn_state;   /* bytes of state a client's connection */
    uint32_t conf_state;   /* bytes of configuration a server */
    uint32_t worker_state; /* bytes of state a worker, zeroed before worker_start */
    uint32_t input_limit;  /* bytes of unconsumed input at which a connection ends as
                              FB_INPUT_LIMIT; 0: 65536 */
    uint32_t metric_n;
    const fb_metric *metrics;
    const fb_ops *ops; /* of clients' connections; at least one callback */

    /* All directives of one server are set: checks them, and makes what follows from them. `parent`
     * is the same as stream {} has it. In the master, and perhaps more than once; nothing outside
     * the memory may be touched. 0, or -1 after fb_conf_errorf(). */
    int (*conf_done)(fb_conf *conf, void *own, const void *parent);
    /* In every worker, of a configuration with a server of this protocol: before its first
     * connection, and after its last. Not 0: the worker cannot start; say why with
     * fb_worker_logf(). */
    int (*worker_start)(fb_worker *worker, void *state);
    void (*worker_stop)(fb_worker *worker, void *state);

    /* Since API 2 */
    uint64_t needs;            /* FB_NEEDS_... */
    const char *const *reads;  /* paths, as with FB_DIRECTIVE_READS; ends with NULL, or is NULL */
    const char *const *writes; /* the same with FB_DIRECTIVE_WRITES */
} fb_protocol;

/* Begins a protocol's definition: FB_PROTOCOL(upper) = { FB_PROTOCOL_HEADER, .name = "upper", ... };
 * It makes a module for load_module, or with -DFB_STATIC the constant fb_protocol_upper of a program
 * that it is linked into. */
#ifdef FB_STATIC
#define FB_PROTOCOL(name)                                                                          \
    extern const fb_protocol fb_protocol_##name;                                                   \
    const fb_protocol fb_protocol_##name
#else
#define FB_PROTOCOL(name)                                                                          \
    extern const fb_protocol fb_protocol_##name;                                                   \
    extern FB_SDK const fb_protocol *const fb_module;                                              \
    const fb_protocol *const fb_module = &fb_protocol_##name;                                      \
    const fb_protocol fb_protocol_##name
#endif

/* The first, the directives' and the metrics' fields of a descriptor. */
#define FB_PROTOCOL_HEADER                                                                         \
    .abi = FB_ABI, .api = FB_API, .size = sizeof(fb_protocol),                                     \
    .directive_size = sizeof(fb_directive)
#define FB_PROTOCOL_DIRECTIVES(table)                                                              \
    .directives = (table), .directive_n = sizeof(table) / sizeof((table)[0])
#define FB_PROTOCOL_METRICS(table)                                                                 \
    .metrics = (table), .metric_n = sizeof(table) / sizeof((table)[0])

/* ---- The configuration, in conf_done and `set` alone ---- */

/* Reports a mistake at the named directive of the server, or of stream {} from which it has it; NULL
 * or one that was not written: at the server; in `set` always at its directive. Returns -1. */
FB_SDK int fb_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
/* Zeroed memory that lives as long as the configuration; NULL after a report. */
FB_SDK void *fb_conf_alloc(fb_conf *conf, size_t n);
/* As FB_VALUE_TARGET; NULL after a report at `directive`. */
FB_SDK const fb_target *fb_conf_target(fb_conf *conf, const char *directive, const char *text);

/* A map that all workers share. It outlives them, and reloads as long as nothing here changes. */
typedef struct fb_map_options {
    size_t size;                 /* sizeof(fb_map_options) */
    const char *name;            /* its protocol's own; 1 to 31 letters, digits and "_" */
    uint32_t version;            /* of what the protocol puts into it */
    uint32_t capacity;           /* entries, 1 to 1073741824 */
    uint32_t key_max, value_max; /* bytes: 1 to 65535, 1 to 16777216 */
} fb_map_options;

/* Servers of one protocol that name the same map have the same one. It can be used when a worker has
 * started. NULL after a report. */
FB_SDK fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options);

/* ---- Output ---- */

/* Once a connection is closing, was shut down or is broken, these do nothing. Without memory it ends
 * as FB_NO_MEMORY. */
FB_SDK void fb_write(fb_conn *conn, const void *p, size_t n);
FB_SDK void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n);
/* Neither copied nor borrowed: the bytes stay as they are until release(arg), which is called once,
 * from the loop, when they have been sent or dropped. Returns 0; or -1 when the connection takes no
 * output or there is no memory: then nothing was taken, and `release` is not called. */
FB_SDK int fb_write_ref(
    fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* n bytes of a file from `offset` on. `fd` is the connection's when it returns 0, which closes it in
 * the end; -1 as above. A file that ends early ends the connection as FB_IO_ERROR. */
FB_SDK int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends now what would be sent after the callback: for one that goes on for long. */
FB_SDK void fb_flush(fb_conn *conn);
/* Bytes of output that the kernel has not taken. */
FB_SDK size_t fb_unsent(const fb_conn *conn);

/* ---- The connection ---- */

/* No more `data`, nor `eof`, until fb_resume(), which has what was left unconsumed offered again:
 * both at once give the others their turn. A stopped connection has no frames. */
FB_SDK void fb_stop(fb_conn *conn);
FB_SDK void fb_resume(fb_conn *conn);

/* Sends what is still unsent, then ends our half; the peer's goes on. When both halves have ended,
 * the connection ends as FB_FINISHED. */
FB_SDK void fb_shutdown(fb_conn *conn);
/* Sends what is still unsent, then closes; `closed` follows with FB_FINISHED. */
FB_SDK void fb_close(fb_conn *conn);
/* Drops what is unsent and resets the connection; `closed` follows with FB_ABORTED. */
FB_SDK void fb_abort(fb_conn *conn);

/* Ends it as FB_TIMED_OUT when no byte has been received or sent for `ms`, or up to 300 ms less; 0:
 * never. At first a client's is the server's idle_timeout, and first_byte_timeout holds until its
 * first byte in any case. A connect's is 60 s until it is connected, then never; what is set before
 * holds after it too. A pipe has its own instead. */
FB_SDK void fb_set_timeout(fb_conn *conn, uint64_t ms);
/* Has `timer` called with `id` in `ms` (at least 1). A timer that is set is moved. There may be any
 * number, and all are cancelled when the connection ends. Without memory it ends as FB_NO_MEMORY. */
FB_SDK void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms);
FB_SDK void fb_timer_cancel(fb_conn *conn, uint32_t id);
/* Whether it waits for nothing but a new request, so that it may be closed while the worker drains.
 * At first it is not. */
FB_SDK void fb_set_idle(fb_conn *conn, int idle);

/* Memory aligned for any type, not zeroed; NULL without memory. The first lives as long as the
 * connection, the second until fb_temp_reset(), which a protocol calls after each request. */
FB_SDK void *fb_alloc(fb_conn *conn, size_t n);
FB_SDK void *fb_temp_alloc(fb_conn *conn, size_t n);
FB_SDK void fb_temp_reset(fb_conn *conn);

/* The protocol's configuration for the connection's server: conf_state bytes that live as long as
 * the connection; NULL when conf_state is 0. */
FB_SDK const void *fb_conf_of(const fb_conn *conn);
/* The addresses of the two ends; a server's is its target. A unix socket's peer has none: only the family is set. Returns 0,
 * or -1 where the kernel does not say. */
FB_SDK int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out);
FB_SDK int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out);
/* "192.0.2.1:80", "[2001:db8::1]:80", "unix:/path"; 120 bytes hold any. Returns `text`. */
FB_SDK char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size);
/* Bytes so far. */
FB_SDK uint64_t fb_received(const fb_conn *conn);
FB_SDK uint64_t fb_sent(const fb_conn *conn);

/* ---- Frames: for `data`, which goes on while one is there and returns what it has used:
 *
 *     fb_bytes rest = in, line;
 *     while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
 *         ...
 *     return in.n - rest.n;
 *
 * 1: a frame was cut from the front of *rest. It is lent as the input is. 0: it is not whole yet, or
 * the connection ends. ---- */

typedef struct fb_frame_limit {
    size_t most;      /* a longer frame ends the connection as FB_INPUT_LIMIT */
    uint64_t timeout; /* a frame not whole so long after its first byte: FB_TIMED_OUT; 0: none */
} fb_frame_limit;

/* Up to a delimiter of delimiter_n (at least 1) bytes, which belongs to neither the frame nor
 * `most`. */
FB_SDK int fb_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame);
/* n bytes. */
FB_SDK int fb_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame);
/* As many bytes as a number of `width` bytes (1, 2, 4 or 8) before them says, which belongs to
 * neither the frame nor `most`; the most significant byte first, or with `little` the least. */
FB_SDK int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame);

/* ---- Connections to servers ---- */

/* Connects, for `owner`: `opened` follows, and output may be written before it. Or `closed`, with
 * why it could not be. A connection to the target that was kept is used first. `state` has to last
 * until `closed`, which comes before the owner's: with its owner a connection ends too (FB_ABORTED).
 * The log says why a server could not be connected to. Takes one of worker_connections; NULL when all
 * are in use, or `owner` ends, and then nothing follows. */
FB_SDK fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state);
/* A target of which only an address is known, in the connection's memory: as FB_VALUE_TARGET, but
 * no name. NULL when it is no address, or without memory. */
FB_SDK const fb_target *fb_make_target(fb_conn *conn, const char *text);
/* Whether a server's connection had been kept: it may turn out that the server has just closed it,
 * and another is to be tried. */
FB_SDK int fb_is_reused(const fb_conn *conn);
/* Gives a server's connection back, to be used by the next fb_connect() with the same target and
 * ops within `ms` (at least 1) and the same worker: when its output has left, `closed` follows with
 * FB_FINISHED. With unconsumed input, or a peer that has ended its half, it is closed; and so it is
 * when its owner was closed before it in the same callback. */
FB_SDK void fb_keep(fb_conn *conn, uint64_t ms);

typedef struct fb_pipe_options {
    size_t size;      /* sizeof(fb_pipe_options) */
    uint64_t timeout; /* both end as FB_TIMED_OUT when nothing has moved for so long; 0: never */
} fb_pipe_options;

/* Moves what each of the two receives to the other until both have ended, their halves one by one:
 * first what `data` did not consume, but not the `rest` of an `eof`. From now on only `closed` is
 * called on them. When one breaks, the other is reset. Neither is piped yet, and they are two. NULL:
 * no options. */
FB_SDK void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options);

/* ---- The worker ---- */

FB_SDK fb_worker *fb_worker_of(const fb_conn *conn);
/* The worker_state of the connection's protocol; NULL when that is 0. */
FB_SDK void *fb_worker_state(const fb_conn *conn);
/* As of the beginning of this turn of the loop: since 1970-01-01 UTC, and on a clock that never
 * jumps. */
FB_SDK int64_t fb_wall_ms(const fb_worker *worker);
FB_SDK uint64_t fb_mono_ms(const fb_worker *worker);
/* n random bytes, good enough for keys. */
FB_SDK void fb_random(fb_worker *worker, void *p, size_t n);

/* Runs work(job) on a thread, and then done(worker, job) on the loop; `job` is a copy of n bytes,
 * which may be NULL where n is 0. `work` calls nothing of this header. A connection that the result
 * is for is named by an fb_ref in the job, because it may have ended. A worker that ends gracefully
 * waits for its jobs. -1: the queue is full, or there is no memory or thread: nothing follows. */
FB_SDK int fb_run(fb_worker *worker, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

FB_SDK fb_ref fb_ref_of(fb_conn *conn);
/* The connection, if it is this worker's and valid; else NULL. */
FB_SDK fb_conn *fb_find(fb_worker *worker, fb_ref ref);

#define FB_MESSAGE_MAX 16384
/* Sends a message to a connection of any worker, which gets it at most once. Returns its number, for
 * `answered`, which comes once unless `from` ends before, or the other worker lacks memory for it; 0 when it is longer than
 * FB_MESSAGE_MAX, too many (1024 of this connection) were not answered, or there is no memory. */
FB_SDK uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n);

/* ---- What all workers share ---- */

/* `metric` is the index in the protocol's metrics. */
FB_SDK void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by);
/* The sum over all workers. */
FB_SDK int64_t fb_metric_total(const fb_conn *conn, uint32_t metric);

/* Values are only ever appended. */
typedef enum fb_map_status {
    FB_MAP_OK,
    FB_MAP_ABSENT,       /* no such key */
    FB_MAP_CHANGED,      /* it is not, or not any more, what the caller expected */
    FB_MAP_FULL,         /* `capacity` other keys are there */
    FB_MAP_TOO_LARGE,    /* the key or the value, for this map */
    FB_MAP_NOT_A_NUMBER, /* the value is not an int64_t, or would not be any more */
} fb_map_status;

typedef struct fb_item {
    void *value;      /* in: where to copy it to */
    size_t room;      /* in: bytes there */
    size_t n;         /* the value's bytes; of more than `room`, the first were copied */
    uint64_t version; /* another one after each change of the key, also when it was deleted */
    uint64_t ttl;     /* ms until the key vanishes; 0: it does not */
} fb_item;

/* As a ttl: what the key has had. */
#define FB_MAP_KEEP_TTL UINT64_MAX

/* Every call sees each change of any worker whole or not at all, also one whose worker was killed
 * within it. */
FB_SDK fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item);
FB_SDK fb_map_status fb_map_set(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl);
/* Sets it only if its version is still `version`; 0: only if it is absent. */
FB_SDK fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl);
/* Adds to a value that is an int64_t; an absent one counts as 0. */
FB_SDK fb_map_status fb_map_add(
    fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum);
FB_SDK fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key);
/* Entries; of those whose time has come, some may be counted. */
FB_SDK uint64_t fb_map_count(const fb_map *map);

/* ---- Log and statistics ---- */

typedef enum fb_log_level {
    FB_LOG_ALERT = 1,
    FB_LOG_ERROR = 3,
    FB_LOG_WARN = 4,
    FB_LOG_NOTICE = 5,
    FB_LOG_INFO = 6,
    FB_LOG_DEBUG = 7,
} fb_log_level;

/* A line in the error log, `format` as for printf; a connection's ends with client and server. */
FB_SDK void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
FB_SDK void fb_worker_logf(fb_worker *worker, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);

/* Counts one request served, in the daemon's statistics. */
FB_SDK void fb_count_request(fb_conn *conn);

/* The daemon's statistics over all workers, those that have ended included. */
typedef struct fb_statistics {
    size_t size;                                /* in: sizeof(fb_statistics) */
    uint64_t accepts, handled, requests;        /* since the daemon's start */
    uint64_t active, reading, writing, waiting; /* clients' connections now */
} fb_statistics;

FB_SDK void fb_get_statistics(fb_worker *worker, fb_statistics *out);

#ifdef __cplusplus
}
#endif

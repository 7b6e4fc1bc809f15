/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's SDK: a protocol handler is written against this header alone.
 *
 * A protocol is a constant `fb_protocol`: a name, directives, sizes and callbacks. Forkbeard does
 * the rest: it accepts, watches, buffers, times out, limits, logs and counts.
 *
 * Three rules hold for every call:
 *  - Bytes. Input is lent until the callback returns. Output is copied, unless it lies within that
 *    input, which is then sent from where it is. It leaves in one piece after the callback.
 *  - Handles. A connection is valid from `opened` (or fb_connect()) until `closed` returns.
 *    `closed` is called exactly once. To remember a connection for longer, keep an fb_ref.
 *  - Re-entrancy. No call runs a callback. The effects of a call, failures included, are reported
 *    by later callbacks.
 *
 * Callbacks run on the worker's only loop, one after the other. No callback may block: blocking
 * work belongs into fb_run(). Calls may be made from callbacks only: not from another thread, and
 * not before the worker starts, unless the call says so. Times are milliseconds and sizes are
 * bytes. A string or pointer that a call is given is lent until the call returns, unless it says
 * otherwise. */
#pragma once

#include <forkbeard/types.h>

#include <stdarg.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the binary contract, and the version of this header. */
#define FB_ABI 1u
#define FB_API 3u

#if defined(__GNUC__)
#define FB_SDK __attribute__((visibility("default")))
#define FB_SDK_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define FB_SDK
#define FB_SDK_PRINTF(text, args)
#endif

/* ---- The descriptor ---- */

/* The callbacks of a connection. Every callback may be NULL. `state` is the protocol's memory for
 * this connection. For a client it has `conn_state` bytes, zeroed before `opened`, and is NULL when
 * `conn_state` is 0; for a server it is the pointer given to fb_connect(). Later versions only
 * append callbacks. */
typedef struct fb_ops {
    size_t size; /* sizeof(fb_ops) */

    /* The connection is established. Return 0 to go on; any other value ends it as FB_REFUSED. */
    int (*opened)(fb_conn *conn, void *state);

    /* Receives bytes from the peer, at least one, lent until it returns. Returns how many it has
     * consumed, at most in.n. The rest is kept, and offered again in front of the bytes that
     * follow, or after fb_resume(). NULL: all input is discarded. */
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);

    /* The peer has ended its half, and output still reaches it. `rest` is the input that was never
     * consumed. On a stopped connection it is called after fb_resume(). NULL: as if it called
     * fb_close(). */
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);

    /* Input was paused because 64 KiB of output were unsent; most of them have been sent now. */
    void (*writable)(fb_conn *conn, void *state);

    /* The timer that fb_timer() has set with this id has expired, and is no longer set. */
    void (*timer)(fb_conn *conn, void *state, uint32_t id);

    /* The worker accepts no more clients, and exits after its last connection: bring this one to an
     * end. After `deadline` ms it is closed as FB_DRAINED; 0: no deadline. */
    void (*draining)(fb_conn *conn, void *state, uint64_t deadline);

    /* A message from a connection of any worker, lent until it returns. Return 0 when it was
     * handled, any other value to decline it. */
    int (*message)(fb_conn *conn, void *state, fb_ref from, fb_bytes message);

    /* The outcome of a message that this connection has sent; `message` is the number that
     * fb_send_message() has returned. */
    void (*answered)(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome);

    /* The connection has ended, for this reason: the last callback. Output is discarded. When it
     * returns, a client's `state` is freed, and a server's is no longer used. */
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);
} fb_ops;

/* The type of a directive's value. The value is stored in the protocol's configuration, at the
 * offset of the directive. */
typedef enum fb_value {
    FB_VALUE_NONE,   /* no argument and no value: the directive is there or not */
    FB_VALUE_STRING, /* const char *, which lives as long as the configuration */
    FB_VALUE_NUMBER, /* int64_t */
    FB_VALUE_SIZE,   /* int64_t, bytes: "16k"; "off" is 0 where `least` is 0 */
    FB_VALUE_MSEC,   /* int64_t, milliseconds: "1m 30s"; "off" is 0 where `least` is 0 */
    FB_VALUE_FLAG,   /* int64_t, 0 or 1: "off" or "on" */
    FB_VALUE_NAME,   /* int64_t, the index of a word in `names` */
    FB_VALUE_TARGET, /* const fb_target *: "10.0.0.1:80", "name:80" (resolved when the configuration
                        is read, to its first address), "unix:/path"; it lives as long as the
                        configuration */
    FB_VALUE_CUSTOM, /* `room` bytes that `set` makes of the arguments */
} fb_value;

/* Marks the directive that gives a server to this protocol. Every protocol has exactly one. It may
 * stand in `server {}` only. Other directives may also stand in `stream {}`, and servers in it
 * inherit the value unless they set their own. */
#define FB_DIRECTIVE_HANDLER 1u
/* Mark a directive whose value, an FB_VALUE_STRING, is a path that workers open after their start:
 * to read, or to read, write, create, rename and remove. The path is a file, or a directory with
 * everything below it; the value of a relative path is the absolute one, from the prefix (see
 * forkbeard.conf(5)), and that of "" is "". */
#define FB_DIRECTIVE_READS 2u
#define FB_DIRECTIVE_WRITES 4u
/* Marks, beside one of these two, the path of a file that others replace by renaming while workers
 * run: workers may open all that its directory holds. */
#define FB_DIRECTIVE_REPLACED 8u

typedef struct fb_directive {
    const char *name;
    uint32_t value;           /* an fb_value */
    uint32_t flags;           /* FB_DIRECTIVE_... */
    uint32_t offset;          /* bytes from the start of the configuration to the value */
    uint32_t room;            /* FB_VALUE_CUSTOM: bytes of the value, which servers inherit */
    int64_t least, greatest;  /* range of a number, size or time; both 0: 0 to INT64_MAX */
    const char *initial;      /* the default, as an operator would write it; NULL: zeroed */
    const char *const *names; /* FB_VALUE_NAME: the words, then NULL */
    /* FB_VALUE_CUSTOM: is given args_least to args_most arguments, which live as long as the
     * configuration, and writes `room` bytes at `value`. Returns 0, or -1 after
     * fb_conf_errorf(). */
    int (*set)(fb_conf *conf, void *value, const char *const *args, uint32_t n);
    uint32_t args_least, args_most;
} fb_directive;

/* A metric is a number that every worker counts by itself. fb_metric_total() sums it over all
 * workers. */
typedef enum fb_metric_kind {
    FB_COUNTER, /* only grows; the total keeps the counts of workers that have ended */
    FB_GAUGE,   /* goes up and down; the part of a worker ends with the worker */
} fb_metric_kind;

typedef struct fb_metric {
    const char *name;
    uint32_t kind; /* an fb_metric_kind */
    uint32_t reserved;
} fb_metric;

/* Rights that a protocol needs in its workers after their start, and that the sandbox takes away
 * unless they are declared. forkbeard_module(3) lists what each one covers. */
#define FB_NEEDS_EXEC 1u     /* runs other programs */
#define FB_NEEDS_CODE 2u     /* makes memory executable: dlopen(), a compiler of its own */
#define FB_NEEDS_NAMES 4u    /* looks up hosts, users or interfaces with the C library */
#define FB_NEEDS_UDP 8u      /* opens datagram sockets */
#define FB_NEEDS_LISTEN 16u  /* opens listening sockets of its own */
#define FB_NEEDS_CONNECT 32u /* connects to other servers than the targets of its directives */

/* The descriptor of a protocol. Later versions only append fields; `size` tells which ones are
 * there. */
typedef struct fb_protocol {
    uint32_t abi;            /* FB_ABI */
    uint32_t api;            /* FB_API */
    uint32_t size;           /* sizeof(fb_protocol) */
    uint32_t directive_size; /* sizeof(fb_directive) */
    const char *name;        /* 1 to 31 letters, digits and "_"; no other protocol has it */
    const fb_directive *directives;
    uint32_t directive_n;
    uint32_t conn_state;   /* bytes of state for each client's connection */
    uint32_t conf_state;   /* bytes of configuration for each server */
    uint32_t worker_state; /* bytes of state for each worker, zeroed before worker_start */
    uint32_t input_limit;  /* bytes of unconsumed input at which a connection ends as
                              FB_INPUT_LIMIT; 0: 65536 */
    uint32_t metric_n;
    const fb_metric *metrics;
    const fb_ops *ops; /* callbacks of clients' connections, at least one */

    /* Checks the configuration of one server when all its directives are set, and completes it.
     * `own` and `parent` have conf_state bytes, the server's and those of stream {}. Runs in the
     * master, perhaps more than once, and may write only to `own` and to memory of fb_conf_alloc().
     * Returns 0, or -1 after fb_conf_errorf(). */
    int (*conf_done)(fb_conf *conf, void *own, const void *parent);
    /* Run in every worker whose configuration has a server of this protocol: before the worker's
     * first connection, and after its last. A start that does not return 0 keeps the worker from
     * starting, and a reload fails; log the reason with fb_worker_logf(). */
    int (*worker_start)(fb_worker *worker, void *state);
    void (*worker_stop)(fb_worker *worker, void *state);

    /* Since API 2 */
    uint64_t needs;            /* FB_NEEDS_... */
    const char *const *reads;  /* paths as of FB_DIRECTIVE_READS, then NULL; or NULL for none */
    const char *const *writes; /* paths as of FB_DIRECTIVE_WRITES, in the same form */
} fb_protocol;

/* Begins the definition of a protocol:
 *
 *     FB_PROTOCOL(upper) = { FB_PROTOCOL_HEADER, .name = "upper", ... };
 *
 * The result is a module for load_module. With -DFB_STATIC it is the constant fb_protocol_upper
 * instead, for linking into a program. */
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

/* Set the first four fields of a descriptor, those of its directives, and those of its metrics. */
#define FB_PROTOCOL_HEADER                                                                         \
    .abi = FB_ABI, .api = FB_API, .size = sizeof(fb_protocol),                                     \
    .directive_size = sizeof(fb_directive)
#define FB_PROTOCOL_DIRECTIVES(table)                                                              \
    .directives = (table), .directive_n = sizeof(table) / sizeof((table)[0])
#define FB_PROTOCOL_METRICS(table)                                                                 \
    .metrics = (table), .metric_n = sizeof(table) / sizeof((table)[0])

/* ---- The configuration: calls for conf_done and `set` alone ---- */

/* Reports a mistake, and the configuration is refused. The report points at the named directive,
 * where the server or its stream {} has it; at the server when it is NULL or was not written; and
 * within `set` always at the directive that is being set. `format` is as for printf. Returns -1. */
FB_SDK int fb_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
/* Allocates n zeroed bytes, aligned for any type, which are freed with the configuration. Returns
 * NULL without memory, after a report. */
FB_SDK void *fb_conf_alloc(fb_conf *conf, size_t n);
/* Reads an address as FB_VALUE_TARGET does. The target lives as long as the configuration. Returns
 * NULL after a report at `directive`. */
FB_SDK const fb_target *fb_conf_target(fb_conf *conf, const char *directive, const char *text);
/* Finds the pool of threads of this name, which `thread_pool` has declared; "default" is always
 * there. It lives as long as the configuration. Returns NULL after a report at `directive`. */
FB_SDK const fb_pool *fb_conf_pool(fb_conf *conf, const char *directive, const char *name);

/* Describes a map that all workers share. The map outlives workers, and reloads that change none of
 * these options. */
typedef struct fb_map_options {
    size_t size;                 /* sizeof(fb_map_options) */
    const char *name;            /* 1 to 31 letters, digits and "_"; unique in this protocol */
    uint32_t version;            /* changes when the layout of the values changes */
    uint32_t capacity;           /* entries, 1 to 1073741824 */
    uint32_t key_max, value_max; /* bytes: 1 to 65535, 1 to 16777216 */
} fb_map_options;

/* Declares a map. Servers of one protocol that declare the same name share the map, and must agree
 * on all options. It can be used from worker_start on. Returns NULL after a report. */
FB_SDK fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options);

/* ---- Output ---- */

/* Append to the connection's output; p may be reused at once. They do nothing on a connection that
 * is closing, was shut down or is broken. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_write(fb_conn *conn, const void *p, size_t n);
FB_SDK void fb_writev(fb_conn *conn, const fb_bytes *pieces, size_t n);
/* Appends bytes without a copy. They must not change until release(arg) is called: once, from the
 * loop, when they have been sent or discarded. Returns 0; or -1 when the connection takes no output
 * or there is no memory: then nothing was appended, and `release` is not called. */
FB_SDK int fb_write_ref(
    fb_conn *conn, const void *p, size_t n, void (*release)(void *arg), void *arg);
/* Appends n bytes of a file, from `offset` on. Returns 0, and the connection owns `fd` and closes
 * it; or -1 as above, and the caller still owns `fd`. A file that is too short ends the connection
 * as FB_IO_ERROR. */
FB_SDK int fb_send_file(fb_conn *conn, int fd, uint64_t offset, uint64_t n);
/* Sends the output now instead of after the callback. For callbacks that take long. */
FB_SDK void fb_flush(fb_conn *conn);
/* Returns how many bytes of output the kernel has not taken yet. */
FB_SDK size_t fb_unsent(const fb_conn *conn);

/* ---- Files ---- */

#define FB_READ_MAX 1048576
/* Reads n bytes, 1 to FB_READ_MAX, of a regular file from `offset` on, in the way of the server's
 * `aio`, and calls done(conn, state, read) from the loop, never within this call. The bytes are
 * lent until `done` returns, as input is: what it writes of them is sent from where they lie.
 * `done` waits, as input does, while 64 KiB of the connection's output are unsent. Several reads
 * may be under way, and end in any order. `fd` stays the caller's, and open until `done`; it may be
 * closed in `closed`. With O_DIRECT neither offset nor n need be aligned, and what is not costs a
 * longer read. The first call ends the wait for a client's first byte (first_byte_timeout). Returns
 * 0, and `done` is called once, unless the connection was closed, ended or piped by then: it is
 * never called, and there is nothing to give back. Returns -1, and nothing follows, when the
 * connection is closing or in a pipe, when n is out of range, when the queue of `thread_pool` is
 * full, or without memory. */
FB_SDK int fb_read_file(fb_conn *conn, int fd, uint64_t offset, size_t n,
    void (*done)(fb_conn *conn, void *state, const fb_file_read *read));
/* Returns how fb_read_file() reads for this connection: FB_AIO_THREADS where `aio` is on and the
 * kernel has refused it to this worker. */
FB_SDK fb_aio fb_aio_of(const fb_conn *conn);

/* ---- The connection ---- */

/* Stops reading: `data` and `eof` are not called until fb_resume(), which also has unconsumed input
 * offered again. Calling both in turn and returning lets other connections run. The frame calls
 * find no frame while the connection is stopped. */
FB_SDK void fb_stop(fb_conn *conn);
FB_SDK void fb_resume(fb_conn *conn);

/* Sends the unsent output, then ends our half; the peer may go on sending. When both halves have
 * ended, the connection ends as FB_FINISHED. */
FB_SDK void fb_shutdown(fb_conn *conn);
/* Sends the unsent output, then closes; `closed` follows with FB_FINISHED. */
FB_SDK void fb_close(fb_conn *conn);
/* Discards the unsent output and resets the connection; `closed` follows with FB_ABORTED. */
FB_SDK void fb_abort(fb_conn *conn);

/* Ends the connection as FB_TIMED_OUT when no byte has been received or sent for `ms`; 0: never. A
 * client starts with its server's idle_timeout; first_byte_timeout applies until its first byte in
 * any case. A connection to a server starts with 60 s until it is connected, and no timeout then; a
 * timeout that is set earlier holds for both. A pipe has a timeout of its own. */
FB_SDK void fb_set_timeout(fb_conn *conn, uint64_t ms);
/* Sets a timer, which calls the callback `timer` with `id` in `ms`, at least 1. A timer of this id
 * that is set already is moved. There may be any number of timers; all are cancelled when the
 * connection ends. Without memory the connection ends as FB_NO_MEMORY. */
FB_SDK void fb_timer(fb_conn *conn, uint32_t id, uint64_t ms);
FB_SDK void fb_timer_cancel(fb_conn *conn, uint32_t id);
/* Tells whether the connection is between requests (1) or not (0, as at first): a worker that
 * drains closes idle connections, and one without room for another the longest idle; each call with
 * 1 begins that time anew. */
FB_SDK void fb_set_idle(fb_conn *conn, int idle);

/* Allocate n bytes, aligned for any type, not zeroed; NULL without memory. Memory of fb_alloc() is
 * freed with the connection, that of fb_temp_alloc() also by fb_temp_reset(), which a protocol
 * calls after each request. */
FB_SDK void *fb_alloc(fb_conn *conn, size_t n);
FB_SDK void *fb_temp_alloc(fb_conn *conn, size_t n);
FB_SDK void fb_temp_reset(fb_conn *conn);

/* Returns the configuration of the connection's server: conf_state bytes that live as long as the
 * connection, reloads included; NULL when conf_state is 0. */
FB_SDK const void *fb_conf_of(const fb_conn *conn);
/* Copy the address of an end into *out. The peer of a connection to a server is its target. Of a
 * unix socket's peer only the family is set. Return 0, or -1 when the kernel does not know the
 * address. */
FB_SDK int fb_peer_address(const fb_conn *conn, struct sockaddr_storage *out);
FB_SDK int fb_local_address(const fb_conn *conn, struct sockaddr_storage *out);
/* Writes an address as "192.0.2.1:80", "[2001:db8::1]:80" or "unix:/path", cut to `size` bytes, the
 * NUL included; 120 bytes hold any. Returns `text`. */
FB_SDK char *fb_address_text(const struct sockaddr_storage *address, char *text, size_t size);
/* Return the bytes received and sent so far; also in `closed`. */
FB_SDK uint64_t fb_received(const fb_conn *conn);
FB_SDK uint64_t fb_sent(const fb_conn *conn);

/* ---- Frames, for a `data` callback that takes one after the other and returns what it has used:
 *
 *     fb_bytes rest = in, line;
 *     while (fb_frame_until(conn, &rest, "\n", 1, &limit, &line))
 *         ...
 *     return in.n - rest.n;
 *
 * Each call returns 1 when it has cut a frame from the front of *rest; *frame is lent as the input
 * is. It returns 0 when the frame is not complete yet, or the connection is stopped or ends. */

typedef struct fb_frame_limit {
    size_t most;      /* bytes; a longer frame ends the connection as FB_INPUT_LIMIT */
    uint64_t timeout; /* ms from the first byte of a frame to its last, else the connection ends
                         as FB_TIMED_OUT; 0: no limit */
} fb_frame_limit;

/* Cuts a frame that ends before a delimiter of delimiter_n bytes, at least 1. The delimiter is
 * removed, and belongs to neither the frame nor `most`. */
FB_SDK int fb_frame_until(fb_conn *conn, fb_bytes *rest, const void *delimiter, size_t delimiter_n,
    const fb_frame_limit *limit, fb_bytes *frame);
/* Cuts a frame of n bytes. */
FB_SDK int fb_frame_fixed(
    fb_conn *conn, fb_bytes *rest, size_t n, const fb_frame_limit *limit, fb_bytes *frame);
/* Cuts a frame behind its length: a number of `width` bytes (1, 2, 4 or 8), most significant byte
 * first, or with `little` not 0 least significant first. The length is removed, and belongs to
 * neither the frame nor `most`. */
FB_SDK int fb_frame_prefixed(fb_conn *conn, fb_bytes *rest, unsigned width, int little,
    const fb_frame_limit *limit, fb_bytes *frame);

/* ---- Connections to servers ---- */

/* Connects to a server on behalf of `owner`. `opened` follows, or `closed` with the reason why not,
 * which the error log has, too. Output may be written at once. An idle connection that fb_keep()
 * has stored for the same target and ops is used first. `ops` and `state` stay the caller's, and
 * must last until `closed`, which is called before the owner's: a connection ends with its owner,
 * as FB_ABORTED. Takes one of worker_connections. Returns NULL, and nothing follows, when all of
 * them are in use, or `owner` is ending. */
FB_SDK fb_conn *fb_connect(fb_conn *owner, const fb_target *target, const fb_ops *ops, void *state);
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
} fb_pipe_options;

/* Moves the bytes that each connection receives to the other, until both have ended. Unconsumed
 * input of `data` is moved first, but not the `rest` of an `eof`. The end of one peer's half ends
 * the other's; when one connection breaks, the other is reset. From now on only `closed` is called.
 * The two must differ, and neither may be in a pipe already: else nothing happens. Without memory
 * both end as FB_NO_MEMORY. `options` may be NULL. */
FB_SDK void fb_pipe(fb_conn *a, fb_conn *b, const fb_pipe_options *options);

/* ---- The worker ---- */

/* Returns the worker that the callback runs in; it outlives its connections. */
FB_SDK fb_worker *fb_worker_of(const fb_conn *conn);
/* Returns the worker_state of the connection's protocol; NULL when worker_state is 0. */
FB_SDK void *fb_worker_state(const fb_conn *conn);
/* Return the time at the beginning of this turn of the loop, in ms: since 1970-01-01 UTC, and on a
 * clock that never jumps. */
FB_SDK int64_t fb_wall_ms(const fb_worker *worker);
FB_SDK uint64_t fb_mono_ms(const fb_worker *worker);
/* Fills n bytes with random ones, good enough for keys. */
FB_SDK void fb_random(fb_worker *worker, void *p, size_t n);

/* Runs work(job) on a thread, then done(worker, job) on the loop. Both get a copy of the n bytes at
 * `job`, which is freed when `done` returns; `job` may be NULL when n is 0. `work` may not call
 * anything of this header. The connection may have ended when `done` runs: put its fb_ref into the
 * job. A worker that ends gracefully waits for its jobs. Returns 0; or -1, and nothing follows,
 * when the queue of `thread_pool` is full, or there is no memory or thread. */
FB_SDK int fb_run(fb_worker *worker, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* Does what fb_run() does on a thread of another pool than the default one; NULL: of that one. A
 * pool belongs to its configuration: use that of the worker, not one from before a reload. */
FB_SDK int fb_run_in(fb_worker *worker, const fb_pool *pool, void (*work)(void *job),
    void (*done)(fb_worker *worker, void *job), const void *job, size_t n);

/* Calls run(worker, work) once, in the next turn of the loop and never within this call. It gets a
 * copy of the n bytes at `work`, freed when `run` returns; `work` may be NULL when n is 0. The
 * connection may have ended by then: put its fb_ref into the work. A worker that ends gracefully
 * runs it first. Returns 0; or -1, and nothing follows, without memory. */
FB_SDK int fb_post(
    fb_worker *worker, void (*run)(fb_worker *worker, void *work), const void *work, size_t n);

/* Returns a number that names the connection in any worker; 0 without memory. */
FB_SDK fb_ref fb_ref_of(fb_conn *conn);
/* Returns the connection of a reference if it is this worker's and still valid, else NULL. */
FB_SDK fb_conn *fb_find(fb_worker *worker, fb_ref ref);

#define FB_MESSAGE_MAX 16384
/* Sends a copy of n bytes to a connection of any worker, which receives them at most once. Returns
 * the number of the message, with which `answered` is called once, unless `from` ends before, or
 * the other worker has no memory to answer. Returns 0, and nothing follows, when n is above
 * FB_MESSAGE_MAX, when 1024 messages of this connection are not answered yet, or without memory. */
FB_SDK uint64_t fb_send_message(fb_conn *from, fb_ref to, const void *p, size_t n);

/* ---- What all workers share ---- */

/* Adds to a metric, which is named by its index in the protocol's `metrics`. */
FB_SDK void fb_metric_add(fb_conn *conn, uint32_t metric, int64_t by);
/* Returns the sum of a metric over all workers. */
FB_SDK int64_t fb_metric_total(const fb_conn *conn, uint32_t metric);

/* Every call sees the changes of all workers whole or not at all, even when a worker was killed in
 * the middle of one. fb_map_get() fills *item. fb_map_set() sets a value for `ttl` ms; 0: for
 * ever. Keys and values are copied. */
FB_SDK fb_map_status fb_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item);
FB_SDK fb_map_status fb_map_set(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl);
/* Sets a value only if the key still has this version; with 0, only if the key is absent. */
FB_SDK fb_map_status fb_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl);
/* Adds to a value that is an int64_t, where an absent key counts as 0, and stores the sum in *sum
 * unless that is NULL. */
FB_SDK fb_map_status fb_map_add(
    fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum);
FB_SDK fb_map_status fb_map_delete(fb_worker *worker, fb_map *map, fb_bytes key);
/* Returns the number of keys, which may include some that have expired. */
FB_SDK uint64_t fb_map_count(const fb_map *map);

/* ---- Log and statistics ---- */

/* Write a line to the error log; `format` is as for printf. The line of a connection ends with its
 * client and server. */
FB_SDK void fb_conn_logf(fb_conn *conn, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
FB_SDK void fb_worker_logf(fb_worker *worker, fb_log_level level, const char *format, ...)
    FB_SDK_PRINTF(3, 4);

/* Counts one request served in the daemon's statistics. */
FB_SDK void fb_count_request(fb_conn *conn);

/* The daemon's statistics over all workers; counts include workers that have ended. */
typedef struct fb_statistics {
    size_t size;                                /* in: sizeof(fb_statistics) */
    uint64_t accepts, handled, requests;        /* since the daemon's start */
    uint64_t active, reading, writing, waiting; /* clients' connections now */
} fb_statistics;

/* Fills *out, whose `size` the caller has set. */
FB_SDK void fb_get_statistics(fb_worker *worker, fb_statistics *out);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor of a protocol: callbacks, directives, metrics, needs, and the calls allowed to its
 * configuration. Part of <forkbeard/forkbeard.h>, with the same rules. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The descriptor ---- */

/* The callbacks of a connection. Every callback may be NULL. `state` is the protocol's memory for
 * this connection. For a client it has `conn_state` bytes, zeroed before `opened`, or is NULL when
 * `conn_state` is 0; for a server it is the pointer given to fb_connect(). Later versions only
 * append callbacks. */
typedef struct fb_ops {
    size_t size; /* sizeof(fb_ops) */

    /* The connection is established. Return 0 to go on; any other value ends the connection as
     * FB_REFUSED. */
    int (*opened)(fb_conn *conn, void *state);

    /* Receives bytes from the peer, at least one, lent until the return. Returns the number of
     * consumed bytes, at most in.n. The rest is kept, and offered again in front of the next bytes,
     * or after fb_resume(). NULL: all input is discarded. */
    size_t (*data)(fb_conn *conn, void *state, fb_bytes in);

    /* The peer has ended its half; output still reaches the peer. `rest` is the input never
     * consumed. Called after fb_resume() on a stopped connection. NULL: fb_close() is called
     * instead. */
    void (*eof)(fb_conn *conn, void *state, fb_bytes rest);

    /* Input was paused because 64 KiB of output were unsent; most have been sent now. */
    void (*writable)(fb_conn *conn, void *state);

    /* A timer of fb_timer(), set with this id, has expired, and is no longer set. */
    void (*timer)(fb_conn *conn, void *state, uint32_t id);

    /* The connection has to be brought to an end: the worker accepts no more clients, and exits
     * after its last connection, or the client's session_lifetime is over. After `deadline` ms the
     * connection is closed as FB_DRAINED; 0: no deadline. */
    void (*draining)(fb_conn *conn, void *state, uint64_t deadline);

    /* A message from a connection of any worker, lent until the return. Return 0 when the message
     * was handled, any other value to decline. */
    int (*message)(fb_conn *conn, void *state, fb_ref from, fb_bytes message);

    /* The outcome of a message sent by this connection; `message` is the number returned by
     * fb_send_message(). */
    void (*answered)(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome);

    /* The connection has ended, for this reason: the last callback. Output is discarded. After the
     * return a client's `state` is freed, and a server's is no longer used. */
    void (*closed)(fb_conn *conn, void *state, fb_reason reason);

    /* Since API 4 */

    /* The server's `output_limit` is unsent, because the peer takes less than is written: add no
     * more until `writable`, which follows when most has been sent. With twice the limit unsent the
     * connection ends as FB_OUTPUT_LIMIT. */
    void (*unwritable)(fb_conn *conn, void *state);

    /* TLS of fb_start_tls() is on the connection: `data` gets what comes by TLS alone, and output
     * leaves by TLS. NULL: the session goes on all the same. */
    void (*tls_started)(fb_conn *conn, void *state);
} fb_ops;

/* The callbacks of a worker, without a connection. Every callback may be NULL. `state` is the
 * protocol's worker_state; each protocol has its own handle of the worker. Later versions only
 * append callbacks. */
typedef struct fb_worker_ops {
    size_t size; /* sizeof(fb_worker_ops) */

    /* A timer of fb_worker_timer(), set with this id, has expired, and is no longer set. */
    void (*timer)(fb_worker *worker, void *state, uint32_t id);

    /* The worker accepts no more clients, and exits after its last connection; called once, before
     * `draining` of any connection. After `deadline` ms connections are closed; 0: no deadline. */
    void (*draining)(fb_worker *worker, void *state, uint64_t deadline);

    /* A message to this worker, lent until the return. `from` is the sender's reference: another
     * worker, a connection of any worker, or this worker. Return 0 when the message was handled,
     * any other value to decline. */
    int (*message)(fb_worker *worker, void *state, fb_ref from, fb_bytes message);

    /* The outcome of a message of fb_send_worker() or fb_send_all(), lent until the return. */
    void (*answered)(fb_worker *worker, void *state, const fb_answer *answer);

    /* Another worker with this protocol can be sent messages; its configuration may be an earlier
     * one. Called before the worker's first message. */
    void (*worker_came)(fb_worker *worker, void *state, fb_ref id);

    /* The other worker has gone, and no more messages or answers come from there. */
    void (*worker_gone)(fb_worker *worker, void *state, fb_ref id);

    /* A map of fb_map_watch() was changed by any worker, perhaps by this one. The key is lent until
     * the return. FB_MAP_LOST has no key: some changes are not reported, walk again. */
    void (*map_changed)(
        fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what);
} fb_worker_ops;

/* The type of a directive's value. The value is stored in the protocol's configuration, at the
 * offset of the directive. */
typedef enum fb_value {
    FB_VALUE_NONE,   /* no argument and no value: the directive is there or not */
    FB_VALUE_STRING, /* const char *, with the lifetime of the configuration */
    FB_VALUE_NUMBER, /* int64_t */
    FB_VALUE_SIZE,   /* int64_t, bytes: "16k"; "off" is 0 where `least` is 0 */
    FB_VALUE_MSEC,   /* int64_t, milliseconds: "1m 30s"; "off" is 0 where `least` is 0 */
    FB_VALUE_FLAG,   /* int64_t, 0 or 1: "off" or "on" */
    FB_VALUE_NAME,   /* int64_t, the index of a word in `names` */
    FB_VALUE_TARGET, /* const fb_target *, with the lifetime of the configuration: "10.0.0.1:80",
                        "name:80" (the first address when the configuration is read),
                        "unix:/path" */
    FB_VALUE_CUSTOM, /* `room` bytes, made by `set` from the arguments */
    /* Since API 4 */
    FB_VALUE_TEMPLATE, /* const fb_template *, with the lifetime of the configuration: text with
                          variables, "to $remote_addr", for evaluate() of fb_stream */
    FB_VALUE_TLS,      /* const fb_tls_profile *, with the lifetime of the configuration, for
                          fb_connect_with(); NULL: off. The directive NAME is "on" or "off"; beside
                          it the protocol has NAME_verify and the others of nginx that begin with
                          proxy_ssl_, but the cache, under names that begin with NAME_. "off" in a
                          daemon without TLS, where the directives are unknown */
} fb_value;

/* Marks the directive that gives a server to this protocol; every protocol has exactly one, for
 * `server {}` only. Further directives may also stand in `stream {}`, whose values are inherited by
 * servers without a value of their own. */
#define FB_DIRECTIVE_HANDLER 1u
/* Mark a directive (FB_VALUE_STRING) with a path for workers to open after their start: to read, or
 * to read, write, create, rename and remove. The path is a file, or a directory with everything
 * below; the value of a relative path is the absolute path, from the prefix (see
 * forkbeard.conf(5)), and the value of "" is "". */
#define FB_DIRECTIVE_READS 2u
#define FB_DIRECTIVE_WRITES 4u
/* Marks, beside FB_DIRECTIVE_READS or FB_DIRECTIVE_WRITES, the path of a file that other programs
 * replace by renaming while workers run: workers may open everything in its directory. */
#define FB_DIRECTIVE_REPLACED 8u

typedef struct fb_directive {
    const char *name;
    uint32_t value;           /* an fb_value */
    uint32_t flags;           /* FB_DIRECTIVE_... */
    uint32_t offset;          /* bytes from the start of the configuration to the value */
    uint32_t room;            /* FB_VALUE_CUSTOM: bytes of the value, inherited by servers */
    int64_t least, greatest;  /* range of a number, size or time; both 0: 0 to INT64_MAX */
    const char *initial;      /* the default, written as in a file; NULL: zeroed */
    const char *const *names; /* FB_VALUE_NAME: the words, then NULL */
    /* FB_VALUE_CUSTOM: writes `room` bytes at `value` from args_least to args_most arguments, which
     * live as long as the configuration. Returns 0, or -1 after fb_conf_errorf(). */
    int (*set)(fb_conf *conf, void *value, const char *const *args, uint32_t n);
    uint32_t args_least, args_most;
} fb_directive;

/* A metric is a number counted by every worker separately. fb_metric_total() is the sum over all
 * workers. */
typedef enum fb_metric_kind {
    FB_COUNTER, /* only grows; the total keeps the counts of ended workers */
    FB_GAUGE,   /* goes up and down; the part of a worker ends with the worker */
} fb_metric_kind;

typedef struct fb_metric {
    const char *name;
    uint32_t kind; /* an fb_metric_kind */
    uint32_t reserved;
} fb_metric;

/* Mark a variable worked out anew at each use, instead of once in a session. */
#define FB_VARIABLE_VOLATILE 1u

/* A variable defined by a protocol, for log_format, map and all further directives with
 * variables. Sessions of other protocols do not find the variable: the access log has "-" there.
 * Since API 4. */
typedef struct fb_variable_definition {
    const char *name; /* the protocol's name, "_", and 1 to 31 letters, digits and "_" */
    uint32_t flags;   /* FB_VARIABLE_... */
    uint32_t reserved;
    /* Sets *out to the value for this session: a constant, or memory of fb_alloc(), because the
     * value has to stay until `closed` returns. Called when the value is needed, also within a call
     * of fb_stream, and for the access log before `closed`: may look at everything, and may not
     * change the connection. `state` is the client's. Before `opened` there is no state, so the
     * variable is not found. `variable` is the index in the table. Returns 0; any other value: not
     * found. NULL: the value is from set() of fb_stream. */
    int (*value)(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out);
} fb_variable_definition;

/* Rights for a protocol's workers after their start, taken away by the sandbox unless declared.
 * forkbeard_module(3) describes each right. */
#define FB_NEEDS_EXEC 1u       /* runs other programs */
#define FB_NEEDS_CODE 2u       /* makes memory executable: dlopen(), a compiler of its own */
#define FB_NEEDS_NAMES 4u      /* looks up hosts, users or interfaces with the C library */
#define FB_NEEDS_UDP 8u        /* opens datagram sockets */
#define FB_NEEDS_LISTEN 16u    /* opens listening sockets of its own */
#define FB_NEEDS_CONNECT 32u   /* connects to servers beyond the targets of directives */
#define FB_NEEDS_BIND 64u      /* chooses the local addresses of connections. Since API 4 */
#define FB_NEEDS_RESOLVER 128u /* asks servers of names, by fb_resolve(). Since API 4 */
/* Connects from addresses of other hosts, by FB_CONNECT_TRANSPARENT: workers keep CAP_NET_RAW of a
 * master that is root. Includes FB_NEEDS_BIND. Since API 4 */
#define FB_NEEDS_TRANSPARENT 256u
/* No rights, but facts that sessions keep of the TLS of their clients. Since API 4 */
#define FB_NEEDS_TLVS 512u          /* for tlvs() of fb_stream */
#define FB_NEEDS_CERTIFICATES 1024u /* certificates of clients */
/* No right either: has fb_start_tls(), and servers need an ssl_certificate. Since API 4 */
#define FB_NEEDS_TLS 2048u

/* References to connections of this protocol are also valid in other protocols, for fb_find() and
 * for messages. */
#define FB_TAKES_FOREIGN 1u
/* Sessions with TLS keep what fb_tls_info() tells: some 100 bytes each, and the certificate of a
 * client that has sent one. Since API 4 */
#define FB_KEEPS_TLS 2u

/* The descriptor of a protocol. Later versions only append fields; `size` tells which are
 * present. */
typedef struct fb_protocol {
    uint32_t abi;            /* FB_ABI */
    uint32_t api;            /* FB_API */
    uint32_t size;           /* sizeof(fb_protocol) */
    uint32_t directive_size; /* sizeof(fb_directive) */
    const char *name;        /* 1 to 31 letters, digits and "_"; unique among protocols */
    const fb_directive *directives;
    uint32_t directive_n;
    uint32_t conn_state;   /* bytes of state for each client's connection, at most 16 MiB */
    uint32_t conf_state;   /* bytes of configuration for each server */
    uint32_t worker_state; /* bytes of state for each worker, zeroed before worker_start */
    uint32_t input_limit;  /* bytes of unconsumed input that end a connection as FB_INPUT_LIMIT;
                              0: 65536 */
    uint32_t metric_n;
    const fb_metric *metrics;
    const fb_ops *ops; /* callbacks of clients' connections, at least one */

    /* Checks and completes the configuration of one server when all its directives are set. `own`
     * and `parent` have conf_state bytes, of the server and of stream {}. Runs in the master,
     * perhaps more than once, and may write only to `own` and to memory of fb_conf_alloc(). Returns
     * 0, or -1 after fb_conf_errorf(). */
    int (*conf_done)(fb_conf *conf, void *own, const void *parent);
    /* Run in every worker whose configuration has a server of this protocol: before the worker's
     * first connection, and after its last. When a start does not return 0, the worker does not
     * start, and a reload fails; log the reason with fb_worker_logf(). */
    int (*worker_start)(fb_worker *worker, void *state);
    void (*worker_stop)(fb_worker *worker, void *state);

    /* Since API 2 */
    uint64_t needs;            /* FB_NEEDS_... */
    const char *const *reads;  /* paths as of FB_DIRECTIVE_READS, then NULL; or NULL for none */
    const char *const *writes; /* paths as of FB_DIRECTIVE_WRITES, in the same form */

    /* Since API 4 */
    const fb_worker_ops *worker_ops; /* callbacks of each worker, or NULL */
    uint64_t flags;                  /* FB_TAKES_FOREIGN, FB_KEEPS_TLS */
    uint64_t output_limit; /* bytes of unsent output, without files, for a call of `unwritable`;
                              0: 67108864; UINT64_MAX, and before API 4: none. The directives
                              output_limit and input_limit override the fields. */

    /* Run in the master, for each server of this protocol in the order of the file: when a
     * configuration has come into force, and when it is no longer in force, because of a new
     * configuration or the end of the daemon's last worker. In a reload the new configuration is
     * accepted before the old one is gone; old workers may go on with their sessions. When workers
     * of the new configuration crash at once, the old configuration comes back, and is accepted
     * again. Neither hook runs in a check of the configuration (`-t`, and before each start and
     * reload), nor for a configuration that fails: so hooks run untried, with the master's rights,
     * and a crash ends the daemon. They must not block, start threads or processes, or change their
     * arguments. `own` is the server's configuration. The only call allowed is fb_master_logf(),
     * and `master` is valid until the hook returns. */
    void (*conf_accepted)(fb_master *master, const void *own);
    void (*conf_gone)(fb_master *master, const void *own);

    const fb_variable_definition *variables; /* defined by this protocol */
    uint32_t variable_n;
    uint32_t variable_size; /* sizeof(fb_variable_definition) */
} fb_protocol;

/* Begins the definition of a protocol:
 *
 *     FB_PROTOCOL(upper) = { FB_PROTOCOL_HEADER, .name = "upper", ... };
 *
 * The result is a module for load_module. With -DFB_STATIC it is the constant fb_protocol_upper
 * instead, for linking into a program. C++ before C++20 has fb_define() of cxx.h instead of
 * FB_PROTOCOL_HEADER and names of fields. */
#ifdef FB_STATIC
#define FB_PROTOCOL(name)                                                                          \
    FB_SDK_EXTERN const fb_protocol fb_protocol_##name;                                            \
    const fb_protocol fb_protocol_##name
#else
#define FB_PROTOCOL(name)                                                                          \
    FB_SDK_EXTERN const fb_protocol fb_protocol_##name;                                            \
    FB_SDK_EXTERN FB_SDK const fb_protocol *const fb_module;                                       \
    const fb_protocol *const fb_module = &fb_protocol_##name;                                      \
    const fb_protocol fb_protocol_##name
#endif

/* Set the first four fields of a descriptor, and its tables of directives, metrics and
 * variables. */
#define FB_PROTOCOL_HEADER                                                                         \
    .abi = FB_ABI, .api = FB_API, .size = sizeof(fb_protocol),                                     \
    .directive_size = sizeof(fb_directive)
#define FB_PROTOCOL_DIRECTIVES(table)                                                              \
    .directives = (table), .directive_n = sizeof(table) / sizeof((table)[0])
#define FB_PROTOCOL_METRICS(table)                                                                 \
    .metrics = (table), .metric_n = sizeof(table) / sizeof((table)[0])
#define FB_PROTOCOL_VARIABLES(table)                                                               \
    .variables = (table), .variable_n = sizeof(table) / sizeof((table)[0]),                        \
    .variable_size = sizeof((table)[0])

/* ---- The configuration: calls for conf_done and `set` alone ---- */

/* Reports a mistake, and the configuration is refused. The report points at the named directive, in
 * the server or its stream {}; at the server when `directive` is NULL or was not written; and
 * within `set` always at the directive being set. `format` is as for printf. Returns -1. */
FB_SDK int fb_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
    FB_SDK_PRINTF(3, 4);
/* Allocates n zeroed bytes, aligned for any type, freed with the configuration. Returns NULL
 * without memory, after a report. */
FB_SDK void *fb_conf_alloc(fb_conf *conf, size_t n);
/* Reads an address as FB_VALUE_TARGET does. The target lives as long as the configuration. Returns
 * NULL after a report at `directive`. */
FB_SDK const fb_target *fb_conf_target(fb_conf *conf, const char *directive, const char *text);
/* Finds a pool of threads declared with `thread_pool`, or "default", which always exists. The pool
 * lives as long as the configuration. Returns NULL after a report at `directive`. */
FB_SDK const fb_pool *fb_conf_pool(fb_conf *conf, const char *directive, const char *name);
/* Reads text with variables as FB_VALUE_TEMPLATE does. The template lives as long as the
 * configuration. Returns NULL after a report at `directive`. Since API 4. */
FB_SDK const fb_template *fb_conf_template(fb_conf *conf, const char *directive, const char *text);
/* Finds a variable by its name, "remote_addr" or "$remote_addr". The variable lives as long as the
 * configuration, which is refused when the name is still undefined in the end. Returns NULL after a
 * report at `directive`. Since API 4. */
FB_SDK const fb_variable *fb_conf_variable(fb_conf *conf, const char *directive, const char *name);
/* Reads the listening address of a server of this daemon, for pass() of fb_stream: "10.0.0.1:80",
 * "unix:/path", or text with variables. A server listening on all addresses of a port takes the
 * remaining addresses. The listener lives as long as the configuration, which is refused when an
 * address without variables has no server in the end. Returns NULL after a report at `directive`.
 * Since API 4. */
FB_SDK const fb_listener *fb_conf_listener(fb_conf *conf, const char *directive, const char *text);
/* Declares FB_NEEDS_... beyond the descriptor's, needed by the setting: in a server for this
 * server, in stream {} for all servers. Returns 0; -1 after a report, when this version does not
 * know a need. Since API 4. */
FB_SDK int fb_conf_need(fb_conf *conf, uint64_t needs);

/* Describes a map shared by all workers. The map outlives workers, and reloads with the same
 * options; `memory` may differ, and `capacity` up to eight times the first. */
typedef struct fb_map_options {
    size_t size;                 /* sizeof(fb_map_options) */
    const char *name;            /* 1 to 31 letters, digits and "_"; unique in the protocol */
    uint32_t version;            /* changes when the layout of the values changes */
    uint32_t capacity;           /* entries, 1 to 1073741824 */
    uint32_t key_max, value_max; /* bytes: 1 to 65535, 1 to 16777216 */

    /* Since API 4. 0: memory for `capacity` values of value_max bytes is reserved, and memory once
     * used stays used. Else the most bytes for all keys and values: each has pages of its own, at
     * least one of 4096 bytes, given back when the key goes or the value becomes shorter. */
    uint64_t memory;
} fb_map_options;

/* Declares a map, usable from worker_start on. Servers of one protocol that declare the same name
 * share the map, and must agree on all options. Returns NULL after a report. */
FB_SDK fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options);

#ifdef __cplusplus
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor of a protocol: its callbacks, directives, metrics and needs, and the calls that
 * its configuration may make. Part of <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
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

    /* The worker accepts no more clients, and exits after its last connection, or the client's
     * session_lifetime is over: bring this one to an end. After `deadline` ms it is closed as
     * FB_DRAINED; 0: no deadline. */
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

    /* Since API 4 */

    /* The server's `output_limit` is unsent, because the peer takes less than is written: add no
     * more until `writable`, which follows when most has been sent. To add to twice as much ends
     * the connection as FB_OUTPUT_LIMIT. */
    void (*unwritable)(fb_conn *conn, void *state);
} fb_ops;

/* The callbacks of a worker, which need no connection. Every callback may be NULL. `state` is the
 * protocol's worker_state; each protocol has its own handle of the worker. Later versions only
 * append callbacks. */
typedef struct fb_worker_ops {
    size_t size; /* sizeof(fb_worker_ops) */

    /* The timer that fb_worker_timer() has set with this id has expired, and is no longer set. */
    void (*timer)(fb_worker *worker, void *state, uint32_t id);

    /* The worker accepts no more clients, and exits after its last connection; once, before any
     * connection's `draining`. After `deadline` ms connections are closed; 0: no deadline. */
    void (*draining)(fb_worker *worker, void *state, uint64_t deadline);

    /* A message to this worker, from another worker, a connection of any worker, or itself; lent
     * until the return. `from` is the sender's reference. Return 0 when it was handled, any other
     * value to decline it. */
    int (*message)(fb_worker *worker, void *state, fb_ref from, fb_bytes message);

    /* The outcome of a message that fb_send_worker() or fb_send_all() has sent, lent until it
     * returns. */
    void (*answered)(fb_worker *worker, void *state, const fb_answer *answer);

    /* Another worker with this protocol, of this configuration or an earlier one, can be sent
     * messages; called before its first message. */
    void (*worker_came)(fb_worker *worker, void *state, fb_ref id);

    /* The other worker has gone, and nothing of it comes any more. */
    void (*worker_gone)(fb_worker *worker, void *state, fb_ref id);

    /* A map that fb_map_watch() has asked for was changed by any worker, this one too. The key is
     * lent until it returns. FB_MAP_LOST has no key: some changes are not told, walk again. */
    void (*map_changed)(
        fb_worker *worker, void *state, fb_map *map, fb_bytes key, fb_map_change what);
} fb_worker_ops;

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
    /* Since API 4 */
    FB_VALUE_TEMPLATE, /* const fb_template *: text with variables, "to $remote_addr"; it lives as
                          long as the configuration, and evaluate() of fb_stream needs it */
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
/* Marks, beside FB_DIRECTIVE_READS or FB_DIRECTIVE_WRITES, the path of a file replaced by renaming
 * while workers run: workers may open all files of its directory. */
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

/* Mark a variable whose value is worked out at each use, instead of once in a session. */
#define FB_VARIABLE_VOLATILE 1u

/* A variable that a protocol defines: log_format, map and all other directives that take variables
 * may use it, by this name. Sessions of other protocols do not find it, and the access log has "-"
 * in its place. Since API 4. */
typedef struct fb_variable_definition {
    const char *name; /* the protocol's name, "_", and 1 to 31 letters, digits and "_" */
    uint32_t flags;   /* FB_VARIABLE_... */
    uint32_t reserved;
    /* Sets *out to the value for this session, which has to stay until `closed` returns: it is a
     * constant, or lies in memory of fb_alloc(). Called when somebody needs it, also within a call
     * of fb_stream, and for the access log before `closed`: it may look at everything, and may not
     * change the connection. `state` is that of the client, of which there is none before `opened`:
     * the variable is not found then. `variable` is its place in the table. Returns 0; any other
     * value: it is not found. NULL: it is what set() of fb_stream has given it. */
    int (*value)(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out);
} fb_variable_definition;

/* Rights for a protocol's workers after their start, which the sandbox takes away unless declared.
 * forkbeard_module(3) lists the extent of each right. */
#define FB_NEEDS_EXEC 1u       /* runs other programs */
#define FB_NEEDS_CODE 2u       /* makes memory executable: dlopen(), a compiler of its own */
#define FB_NEEDS_NAMES 4u      /* looks up hosts, users or interfaces with the C library */
#define FB_NEEDS_UDP 8u        /* opens datagram sockets */
#define FB_NEEDS_LISTEN 16u    /* opens listening sockets of its own */
#define FB_NEEDS_CONNECT 32u   /* connects to servers beyond the targets of its directives */
#define FB_NEEDS_BIND 64u      /* connects from chosen local addresses. Since API 4 */
#define FB_NEEDS_RESOLVER 128u /* asks servers of names, by fb_resolve(). Since API 4 */
/* Connects from addresses of others, by FB_CONNECT_TRANSPARENT: workers keep CAP_NET_RAW of a
 * master that is root. Includes FB_NEEDS_BIND. Since API 4 */
#define FB_NEEDS_TRANSPARENT 256u

/* References to connections of this protocol are also good for other protocols, to find and to send
 * messages to. */
#define FB_TAKES_FOREIGN 1u

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
    uint32_t conn_state;   /* bytes of state for each client's connection, at most 16 MiB */
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

    /* Since API 4 */
    const fb_worker_ops *worker_ops; /* callbacks of each worker, or NULL */
    uint64_t flags;                  /* FB_TAKES_... */
    uint64_t output_limit; /* bytes of unsent output, files not counted, at which `unwritable` is
                              called; 0: 67108864; UINT64_MAX, and before API 4: none. The directive
                              of this name overrides it, and that of input_limit the other. */

    /* Run in the master, for each server of this protocol in the order of the file: when a
     * configuration has come into force, and when it no longer is, because another one has or
     * because the daemon has ended its last worker. With a reload the new configuration is accepted
     * before the old one is gone, whose workers may go on with their sessions. A configuration that
     * was replaced and comes back, because the workers of the new one crash at once, is accepted
     * again. Neither runs in a check of the configuration (`-t`, and before each start and reload),
     * nor for one that fails: so they run untried, with the master's rights, and a crash in them
     * ends the daemon. They must not block, start threads or processes, or change what they are
     * given. `own` is the server's configuration. Of the calls fb_master_logf() alone is allowed,
     * and the master is the caller's until the hook returns. */
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

/* Set the first four fields of a descriptor, and those of its directives, metrics and variables. */
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
/* Reads text with variables as FB_VALUE_TEMPLATE does. It lives as long as the configuration.
 * Returns NULL after a report at `directive`. Since API 4. */
FB_SDK const fb_template *fb_conf_template(fb_conf *conf, const char *directive, const char *text);
/* Finds a variable by its name, "remote_addr" or "$remote_addr". It lives as long as the
 * configuration, which is refused when nothing defines a variable of this name in the end. Returns
 * NULL after a report at `directive`. Since API 4. */
FB_SDK const fb_variable *fb_conf_variable(fb_conf *conf, const char *directive, const char *name);
/* Reads an address that servers of this daemon listen on, for pass() of fb_stream: "10.0.0.1:80",
 * "unix:/path", or text with variables. A server that listens on all addresses of a port takes
 * those that no other has. It lives as long as the configuration, which is refused when nobody
 * listens on an address without variables in the end. Returns NULL after a report at `directive`.
 * Since API 4. */
FB_SDK const fb_listener *fb_conf_listener(fb_conf *conf, const char *directive, const char *text);
/* Declares FB_NEEDS_... that the descriptor does not have, because what is being set needs them: in
 * a server for that, in stream {} for all. Returns 0; -1 after a report, when this version does not
 * know one of them. Since API 4. */
FB_SDK int fb_conf_need(fb_conf *conf, uint64_t needs);

/* Describes a map that all workers share. The map outlives workers, and reloads that change none of
 * these options but `memory`, and `capacity` to at most eight times the first. */
typedef struct fb_map_options {
    size_t size;                 /* sizeof(fb_map_options) */
    const char *name;            /* 1 to 31 letters, digits and "_"; unique in this protocol */
    uint32_t version;            /* changes when the layout of the values changes */
    uint32_t capacity;           /* entries, 1 to 1073741824 */
    uint32_t key_max, value_max; /* bytes: 1 to 65535, 1 to 16777216 */

    /* Since API 4. 0: memory for `capacity` values of value_max bytes is reserved, and what was
     * used once stays used. Else the bytes that all keys and values may take: each has pages of its
     * own, at least one of 4096 bytes, which are given back when it goes or becomes shorter. */
    uint64_t memory;
} fb_map_options;

/* Declares a map. Servers of one protocol that declare the same name share the map, and must agree
 * on all options. It can be used from worker_start on. Returns NULL after a report. */
FB_SDK fb_map *fb_conf_map(fb_conf *conf, const fb_map_options *options);

#ifdef __cplusplus
}
#endif

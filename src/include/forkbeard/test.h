/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's test kit: drives a protocol without a daemon. The worker is the daemon's own, with
 * sessions, buffers, timers and limits; only the kernel is simulated. Sockets are in memory, time
 * passes when the test says so, and random numbers come from a seed: a test opens no port, waits
 * for nothing, and does the same in every run.
 *
 *     #include <forkbeard/test.h>
 *
 *     extern const fb_protocol fb_protocol_upper;
 *
 *     static const fb_test_step script[] = {
 *         FB_TEST_SAY("hello\n"),
 *         FB_TEST_EXPECT("HELLO\n"),
 *         FB_TEST_SHUT(),
 *         FB_TEST_EXPECT_CLOSED(),
 *     };
 *
 *     int main(void)
 *     {
 *         return fb_test_converse(&fb_protocol_upper, "upper;", FB_TEST_SCRIPT(script)) != 0;
 *     }
 *
 * Test and protocol are compiled with the flags of pkg-config forkbeard-test (with FB_STATIC) and
 * linked with its libraries into one program. -fsanitize=address,undefined finds wrong uses of
 * memory at once: input, `conn_state` and each piece of fb_alloc() have no spare bytes, and ended
 * connections may not be touched.
 *
 * Calls that return results (fb_test_heard() and so on) first let the worker finish its work. A
 * mistake in the use of the kit ends the program with a line about the mistake. Only one thread at
 * a time may use a test. Strings and bytes are lent until the call returns, times are ms, and
 * pointers to peers and servers are valid until fb_test_end(). */
#pragma once

#include <forkbeard/forkbeard.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FB_TEST_API __attribute__((visibility("default")))
#else
#define FB_TEST_API
#endif

/* A test: a worker whose configuration has one server, on a simulated kernel; or several workers,
 * or servers (see fb_test_options). */
typedef struct fb_test fb_test;
/* The program's end of a connection: a client, or a server connected to by the protocol. */
typedef struct fb_test_peer fb_test_peer;
/* An address for the protocol to connect to. */
typedef struct fb_test_server fb_test_server;

/* ---- A test ---- */

typedef struct fb_test_options {
    size_t size;                 /* sizeof(fb_test_options) */
    const char *server;          /* directives of `server {}` besides `listen`: "upper; max 4k;" */
    const char *stream;          /* directives of `stream {}` besides the server; NULL: none */
    const char *main;            /* directives outside of `stream {}`: "env A=1;"; NULL: none */
    uint32_t worker_connections; /* 0: 512 */
    /* When not 0, the network makes all trouble that a correct protocol cannot notice. Bytes arrive
     * and leave in parts, and late, and events come without a cause. */
    uint32_t trouble;
    uint64_t seed; /* for random numbers, and for the trouble */
    /* The beginning of output allowed instead of the expected bytes in a conversation with a failed
     * allocation: "-ERR"; "": anything; NULL: nothing */
    const char *excuse;
    /* 0: a single process, as with `master_process off`; else the number of workers of a master, at
     * most 64. All workers share a protocol's statics here: state belongs into `worker_state`. */
    uint32_t workers;
    /* Further protocols, for further servers; ends with NULL. NULL: none */
    const fb_protocol *const *protocols;
    /* Directives of further servers, at most 15: server 1 listens at 192.0.2.80:81, server 2 at
     * port 82, and so on; ends with NULL. NULL: none */
    const char *const *servers;
    uint32_t thorough; /* when not 0, a conversation is tried at all places, however long */
    /* Parameters of `listen` of each server, such as "proxy_protocol": the test then begins each
     * client with the header of a proxy. NULL: none */
    const char *listen;
    /* The text of a log_format, "$status $upper_lines", for the lines of fb_test_access_log(),
     * unless `stream` or the server has an access_log. NULL: none */
    const char *log_format;
} fb_test_options;

/* Starts a worker whose configuration has one server, with these directives or options. The
 * worker's clock begins at 2026-11-21 09:30:00 UTC. Returns a test for fb_test_end() to free; or
 * NULL, after lines on standard error, when the protocol, the configuration or the start of the
 * worker fails. */
FB_TEST_API fb_test *fb_test_start(const fb_protocol *protocol, const char *server);
FB_TEST_API fb_test *fb_test_start_with(
    const fb_protocol *protocol, const fb_test_options *options);

/* Ends the worker, frees the test with its peers and servers, and sets *test to NULL. Connections
 * still open end as FB_DRAINED. Returns the number of faults, each printed as one line:
 *  - a call on an ended connection (its handle is not used again for a long time);
 *  - a log line of level alert about a connection, such as `data` consuming more than was given;
 *  - a descriptor opened since the start and still open, or open then and closed since;
 *  - a descriptor closed while watched;
 *  - a write beyond the end of `conn_state` or of memory of fb_alloc(), or into memory of
 *    fb_temp_alloc() after fb_temp_reset();
 *  - memory of connections, timers or connections left over, or a missing or second `closed`;
 *  - a worker that never stops working. */
FB_TEST_API int fb_test_end(fb_test **test);
/* Returns the number of faults so far. */
FB_TEST_API int fb_test_faults(const fb_test *test);

/* Returns the worker, for calls of the SDK with a worker, such as fb_map_get(). Between the calls
 * of the kit a test may make any call of the SDK allowed to a callback. */
FB_TEST_API fb_worker *fb_test_worker(fb_test *test);
/* Returns the error log so far, all levels included, as one string of lines such as "upper: [info]
 * *1 client 192.0.2.1:1234 connected to 192.0.2.80:80". Lent until the next call of
 * fb_test_logged(). */
FB_TEST_API const char *fb_test_logged(fb_test *test);
/* Returns the access log so far, a line in the test's log_format for each ended session of a
 * client, with its status, bytes and all variables at the end. Lent until the next call of
 * fb_test_access_log(). */
FB_TEST_API const char *fb_test_access_log(fb_test *test);

/* ---- Peers ---- */

/* Connects a client, from 192.0.2.1 to 192.0.2.80:80. The client waits while all worker_connections
 * are in use, and for ever when the worker drains. Never returns NULL. */
FB_TEST_API fb_test_peer *fb_test_connect(fb_test *test);

/* Sends n bytes together, or a string without its NUL. Bytes for a closed connection are lost. */
FB_TEST_API void fb_test_say(fb_test_peer *peer, const void *p, size_t n);
FB_TEST_API void fb_test_says(fb_test_peer *peer, const char *text);
/* Ends the peer's half, after all its bytes. The peer sends no more. */
FB_TEST_API void fb_test_shut(fb_test_peer *peer);
/* Breaks the connection, after all bytes sent by the peer. */
FB_TEST_API void fb_test_reset(fb_test_peer *peer);
/* Lets the peer take n more bytes of output, and then none; SIZE_MAX, as at first: all. */
FB_TEST_API void fb_test_take(fb_test_peer *peer, size_t n);

/* Returns the bytes received by the peer since the start or the last fb_test_forget(); lent until
 * the next call with this peer. */
FB_TEST_API fb_bytes fb_test_heard(fb_test_peer *peer);
FB_TEST_API void fb_test_forget(fb_test_peer *peer);
/* Returns whether the peer would read the end: the protocol has ended its half, or closed. */
FB_TEST_API int fb_test_has_ended(fb_test_peer *peer);
/* Returns whether the connection is closed: the protocol reads nothing any more. */
FB_TEST_API int fb_test_is_closed(fb_test_peer *peer);
/* Returns whether the protocol has reset the connection, as with fb_abort(). */
FB_TEST_API int fb_test_was_reset(fb_test_peer *peer);

/* ---- TLS, without any cryptography ---- */

/* The worker's TLS is without cryptography, too: its records are a few bytes longer than their
 * data. Directives of TLS are those of the daemon (ssl_verify_client and so on), but no file of
 * theirs is read: a certificate is the name of its file, "mail.test.crt", and trusted by those
 * whose trusted certificates are a file of the same name. A test has TLS where the program was
 * linked with a kit that has: */
FB_TEST_API int fb_test_has_tls(void);

/* Shakes hands: as a client, or as the server where the protocol has connected to fb_test_serve().
 * `how` has words: "sni=NAME", "alpn=smtp,imap", "cert=FILE", for the peer's own certificate. From
 * then on the peer says and hears plaintext; heard bytes of before stay. fb_test_shut() sends
 * close_notify first. Returns 0; or -1 when the handshake has failed, or waits for the keeper. */
FB_TEST_API int fb_test_tls(fb_test_peer *peer, const char *how);
/* Goes over to the next keys, and asks the protocol's side to do so. */
FB_TEST_API void fb_test_key_update(fb_test_peer *peer, int asks);
/* Ends the peer's half without close_notify, as an attacker could. */
FB_TEST_API void fb_test_truncate(fb_test_peer *peer);
/* Sends an alert, which ends the session unless it is a warning. */
FB_TEST_API void fb_test_alert(fb_test_peer *peer, unsigned alert);
/* Returns the alert that the peer has got last; -1: none. */
FB_TEST_API int fb_test_alerted(fb_test_peer *peer);

/* The process with the keys, which shakes hands for all workers. */
typedef enum fb_test_keeping {
    FB_TEST_KEEPER_SERVES,
    FB_TEST_KEEPER_LATE, /* answers nothing until it is set to serve again */
    FB_TEST_KEEPER_LOST, /* dies, and is replaced at once: handshakes under way fail */
} fb_test_keeping;
FB_TEST_API void fb_test_keeper(fb_test *test, fb_test_keeping how);

/* ---- Servers for fb_connect() ---- */

typedef enum fb_test_reply {
    FB_TEST_ACCEPTS,
    FB_TEST_REFUSES,
    FB_TEST_SILENT, /* connects stay unanswered, until another reply is set */
} fb_test_reply;

/* Makes a server at the address ("10.0.0.1:80", "unix:/path") with this reply to connects, or
 * changes the reply of an existing server. Connects to other addresses are refused, and so are
 * local addresses of 203.0.113.0/24 (EADDRNOTAVAIL); all other local addresses exist. */
FB_TEST_API fb_test_server *fb_test_serve(fb_test *test, const char *address, fb_test_reply reply);
/* Returns the first connection to the server not returned yet; NULL without one. */
FB_TEST_API fb_test_peer *fb_test_accept(fb_test_server *server);

/* ---- Names for fb_resolve() ---- */

/* Adds a record to the servers of names, "NAME TTL TYPE DATA": "a.test 60 A 192.0.2.1",
 * "_x._tcp.test 60 SRV 10 5 80 a.test", "1.2.0.192.in-addr.arpa 60 PTR a.test"; the type is A,
 * AAAA, CNAME, PTR or SRV. Each address of a `resolver` has a server; without `resolver` the
 * system's is asked, also simulated: neither /etc/hosts nor a server of the machine. */
FB_TEST_API void fb_test_name(fb_test *test, const char *record);
/* Sets the reply of the servers of names: FB_TEST_ACCEPTS, the default: the known records, or no
 * such name; FB_TEST_REFUSES: a failure; FB_TEST_SILENT: nothing, until another reply is set. */
FB_TEST_API void fb_test_names(fb_test *test, fb_test_reply reply);

/* ---- The worker ---- */

/* Runs the worker until it has no more work. Waits for jobs of fb_run() and for reads of
 * fb_read_file(), which run on threads, also with `aio on`, because the simulated kernel reads no
 * files; with `aio off` the worker reads without a thread. */
FB_TEST_API void fb_test_run(fb_test *test);
/* Lets time pass: timers expire in order, each followed by its work. */
FB_TEST_API void fb_test_pass(fb_test *test, uint64_t ms);
/* Drains the worker, as in a reload: it accepts no more clients and ends its connections.
 * `deadline` is the worker_shutdown_timeout; 0: none. */
FB_TEST_API void fb_test_drain(fb_test *test, uint64_t deadline);
/* Reports a watched descriptor as ready: the callback of fb_watch_fd() is called once, when the
 * worker next runs, for the events both given and watched. Without this call a watch is called as
 * in the daemon, because protocols have real descriptors here, too. Ends the program when the
 * descriptor is not watched. */
FB_TEST_API void fb_test_ready(fb_test *test, int fd, unsigned events);
/* Lets the next `after` allocations for connections succeed, fb_alloc() included, and the following
 * n fail. */
FB_TEST_API void fb_test_refuse_memory(fb_test *test, uint64_t after, uint64_t n);
/* Returns the number of allocations since the start, failed ones included. */
FB_TEST_API uint64_t fb_test_allocations(const fb_test *test);

/* ---- Several workers, several servers ---- */

/* Connects a client to a worker, from 0, and to a server, from 0. Clients of a worker that has gone
 * wait for the replacement. */
FB_TEST_API fb_test_peer *fb_test_connect_to(fb_test *test, unsigned worker, unsigned server);
/* Returns a worker for calls of the SDK, with the handle of the protocol of this name, or (NULL) of
 * the protocol of server 0; NULL when the worker has gone. */
FB_TEST_API fb_worker *fb_test_worker_at(fb_test *test, unsigned worker, const char *protocol);

/* Kills a worker, as SIGKILL does: connections are reset, messages on their way from others are
 * lost, other workers are told, and gauges are zero. `closed` and `worker_stop` are called all the
 * same to free memory, but without effect: changes of maps, messages and output come to nothing. */
FB_TEST_API void fb_test_kill(fb_test *test, unsigned worker);
/* Starts a worker in the place of a killed or drained worker. Returns 0; or -1, after lines in the
 * log, if the start failed. */
FB_TEST_API int fb_test_replace(fb_test *test, unsigned worker);
/* Drains a worker, as fb_test_drain() drains all. With several workers, a drained worker goes, and
 * the rest are told. */
FB_TEST_API void fb_test_drain_worker(fb_test *test, unsigned worker, uint64_t deadline);

/* Ways of messages between workers. */
typedef enum fb_test_way {
    FB_TEST_DELIVERS,
    FB_TEST_LATE, /* messages wait for the next change of the way; a sender's death loses them */
    FB_TEST_LOST, /* messages vanish: the outcome of messages and answers is FB_MESSAGE_UNKNOWN */
    FB_TEST_BUSY, /* the sender's queue is full: the outcome is FB_MESSAGE_BUSY */
} fb_test_way;

#define FB_TEST_EVERY UINT32_MAX
/* Sets the way of messages sent from now on, from one worker or (FB_TEST_EVERY) all, to one worker
 * or all. At first all ways deliver; on a network with trouble, at times late. */
FB_TEST_API void fb_test_link(fb_test *test, unsigned from, unsigned to, fb_test_way how);

/* Returns a metric, the sum over all workers, of the protocol of this name, or (NULL) of the
 * protocol of server 0. */
FB_TEST_API int64_t fb_test_metric(fb_test *test, const char *protocol, const char *metric);

/* ---- Time ---- */

/* Returns the ms since the start. */
FB_TEST_API uint64_t fb_test_now(const fb_test *test);
/* Lets time pass until done(test, arg) returns other than 0, called after every possible change,
 * but at most `ms`. Returns whether `done` did so; fb_test_now() then tells when. */
FB_TEST_API int fb_test_pass_until(
    fb_test *test, int (*done)(fb_test *test, void *arg), void *arg, uint64_t ms);
/* Sets the duration of jobs of fb_run() and reads of fb_read_file() that begin from now on: `done`
 * is called when no other has begun for this time. At first the duration is 0. */
FB_TEST_API void fb_test_jobs_take(fb_test *test, uint64_t ms);

/* ---- Conversations ---- */

/* A step of a script, made by one of the macros below. */
typedef struct fb_test_step {
    uint32_t act;
    const void *p;
    uint64_t n;
} fb_test_step;

enum {
    FB_TEST_ACT_SAY = 1,
    FB_TEST_ACT_EXPECT,
    FB_TEST_ACT_EXPECT_ANY,
    FB_TEST_ACT_EXPECT_END,
    FB_TEST_ACT_EXPECT_CLOSED,
    FB_TEST_ACT_EXPECT_RESET,
    FB_TEST_ACT_SHUT,
    FB_TEST_ACT_RESET,
    FB_TEST_ACT_PASS,
    FB_TEST_ACT_DRAIN,
    FB_TEST_ACT_PEER,
    FB_TEST_ACT_SERVER,
    FB_TEST_ACT_REPLY,
    FB_TEST_ACT_CLIENT,
    FB_TEST_ACT_KILL,
    FB_TEST_ACT_REPLACE,
    FB_TEST_ACT_LINK,
    FB_TEST_ACT_DRAIN_WORKER,
    FB_TEST_ACT_EXPECT_WITHIN,
    FB_TEST_ACT_EXPECT_CLOSED_WITHIN,
    FB_TEST_ACT_NAME,
    FB_TEST_ACT_NAMES,
    FB_TEST_ACT_EXPECT_LOG,
    FB_TEST_ACT_TLS,
    FB_TEST_ACT_TLS_REFUSED,
    FB_TEST_ACT_KEY_UPDATE,
    FB_TEST_ACT_TRUNCATE,
    FB_TEST_ACT_ALERT,
    FB_TEST_ACT_EXPECT_ALERT,
    FB_TEST_ACT_KEEPER,
};

/* clang-format off */
/* The client says a string (without its NUL), or bytes. */
#define FB_TEST_SAY(text) { FB_TEST_ACT_SAY, (text), sizeof(text) - 1 }
#define FB_TEST_SAY_BYTES(p, n) { FB_TEST_ACT_SAY, (p), (n) }
/* The client hears exactly these bytes next, or any n bytes. */
#define FB_TEST_EXPECT(text) { FB_TEST_ACT_EXPECT, (text), sizeof(text) - 1 }
#define FB_TEST_EXPECT_BYTES(p, n) { FB_TEST_ACT_EXPECT, (p), (n) }
#define FB_TEST_EXPECT_ANY(n) { FB_TEST_ACT_EXPECT_ANY, NULL, (n) }
/* The client has heard no more than was expected, and the protocol has: ended its half; or closed,
 * perhaps only after the end of the client's half; or reset the connection. */
#define FB_TEST_EXPECT_END() { FB_TEST_ACT_EXPECT_END, NULL, 0 }
#define FB_TEST_EXPECT_CLOSED() { FB_TEST_ACT_EXPECT_CLOSED, NULL, 0 }
#define FB_TEST_EXPECT_RESET() { FB_TEST_ACT_EXPECT_RESET, NULL, 0 }
/* Expects this line next in fb_test_access_log(); the session has ended before. */
#define FB_TEST_EXPECT_LOG(line) { FB_TEST_ACT_EXPECT_LOG, (line), 0 }
/* The client ends its half, or breaks the connection. */
#define FB_TEST_SHUT() { FB_TEST_ACT_SHUT, NULL, 0 }
#define FB_TEST_RESET() { FB_TEST_ACT_RESET, NULL, 0 }
/* The peer shakes hands, by fb_test_tls(): with success, unless the keeper is late; or in vain. */
#define FB_TEST_TLS(how) { FB_TEST_ACT_TLS, (how), 0 }
#define FB_TEST_TLS_REFUSED(how) { FB_TEST_ACT_TLS_REFUSED, (how), 0 }
/* fb_test_key_update(), fb_test_truncate(), fb_test_alert() and fb_test_keeper(). */
#define FB_TEST_KEY_UPDATE(asks) { FB_TEST_ACT_KEY_UPDATE, NULL, (asks) }
#define FB_TEST_TRUNCATE() { FB_TEST_ACT_TRUNCATE, NULL, 0 }
#define FB_TEST_ALERT(alert) { FB_TEST_ACT_ALERT, NULL, (alert) }
#define FB_TEST_KEEPER(how) { FB_TEST_ACT_KEEPER, NULL, (how) }
/* The peer has got this alert. */
#define FB_TEST_EXPECT_ALERT(alert) { FB_TEST_ACT_EXPECT_ALERT, NULL, (alert) }
/* Time passes, or the worker drains: fb_test_pass() and fb_test_drain(). */
#define FB_TEST_PASS(ms) { FB_TEST_ACT_PASS, NULL, (ms) }
#define FB_TEST_DRAIN(deadline) { FB_TEST_ACT_DRAIN, NULL, (deadline) }
/* The following steps are those of peer i, below FB_TEST_PEERS: of a client, connected if
 * necessary; or of a server, which accepts the next connection to the address. At first the steps
 * are those of client 0. */
#define FB_TEST_PEER(i) { FB_TEST_ACT_PEER, NULL, (i) }
#define FB_TEST_SERVER(i, address) { FB_TEST_ACT_SERVER, (address), (i) }
/* The server at the address gives this fb_test_reply from now on. At first all accept. */
#define FB_TEST_REPLY(address, reply) { FB_TEST_ACT_REPLY, (address), (reply) }
/* The servers of names know a record, or give this fb_test_reply from now on: fb_test_name() and
 * fb_test_names(). */
#define FB_TEST_NAME(record) { FB_TEST_ACT_NAME, (record), 0 }
#define FB_TEST_NAMES(reply) { FB_TEST_ACT_NAMES, NULL, (reply) }
/* The following steps are those of peer i, a client, first connected if necessary to this worker
 * and to server 0 or another. */
#define FB_TEST_CLIENT(i, worker) { FB_TEST_ACT_CLIENT, NULL, FB_TEST_THREE((i), (worker), 0) }
#define FB_TEST_CLIENT_OF(i, worker, server) \
    { FB_TEST_ACT_CLIENT, NULL, FB_TEST_THREE((i), (worker), (server)) }
/* A worker dies, is replaced, or drains: fb_test_kill() and so on. */
#define FB_TEST_KILL(worker) { FB_TEST_ACT_KILL, NULL, (worker) }
#define FB_TEST_REPLACE(worker) { FB_TEST_ACT_REPLACE, NULL, (worker) }
#define FB_TEST_DRAIN_WORKER(worker, deadline) \
    { FB_TEST_ACT_DRAIN_WORKER, NULL, UINT64_C(1) * (worker) | UINT64_C(0x10000) * (deadline) }
/* Sends messages between workers this fb_test_way from now on: fb_test_link(). */
#define FB_TEST_LINK(from, to, how) \
    { FB_TEST_ACT_LINK, NULL, FB_TEST_THREE((from) & 0xffff, (to) & 0xffff, (how)) }
/* The client hears exactly these bytes next, or the protocol closes, when at most so many ms (up to
 * 2^32 - 1) have passed. */
#define FB_TEST_EXPECT_WITHIN(text, ms) \
    { FB_TEST_ACT_EXPECT_WITHIN, (text), (sizeof(text) - 1) | UINT64_C(0x100000000) * (ms) }
#define FB_TEST_EXPECT_CLOSED_WITHIN(ms) { FB_TEST_ACT_EXPECT_CLOSED_WITHIN, NULL, (ms) }
#define FB_TEST_THREE(a, b, c) \
    (UINT64_C(1) * (a) | UINT64_C(0x10000) * (b) | UINT64_C(0x100000000) * (c))
/* clang-format on */

#define FB_TEST_PEERS 16
#define FB_TEST_SCRIPT(script) (script), sizeof(script) / sizeof((script)[0])

/* Runs the script, and then again
 *  - with the client's bytes cut into single bytes (of much input the first 2,000), and in two, at
 *    one place after the other;
 *  - with peers that take one byte at a time (of much output a few), or nothing until the script
 *    expects output;
 *  - on a network that makes trouble (see fb_test_options);
 *  - up to each step, and to the middle of the said bytes, where the peer then breaks the
 *    connection or ends its half. Only faults count then; after a break, also that the peer has
 *    heard nothing unexpected;
 *  - with one failing allocation after the other, of the script or of the start. Peers may then
 *    hear less than expected, but nothing else (see `excuse`);
 *  - with several workers: up to each step, where a worker dies and is replaced, and with one lost
 *    message between workers after the other. Only faults count then.
 *
 * Long scripts are tried at a part of these places. A script that fails as written is not run
 * again.
 *
 * Returns the number of failures, faults included. Each has been printed with the variant and the
 * step, counted from 0: "upper: cut at byte 7: step 3: expected "HELLO\n", heard "HEL"". With
 * FB_TEST_VERBOSE in the environment each run is announced, to show the place of a crash. */
FB_TEST_API int fb_test_converse(
    const fb_protocol *protocol, const char *server, const fb_test_step *script, size_t n);
FB_TEST_API int fb_test_converse_with(const fb_protocol *protocol, const fb_test_options *options,
    const fb_test_step *script, size_t n);

/* ---- Fuzzing ---- */

/* Runs one client that says these bytes and ends; the first byte chooses the pieces and pauses. A
 * fault aborts the program. Returns 0. */
FB_TEST_API int fb_test_fuzz(
    const fb_protocol *protocol, const char *server, const uint8_t *data, size_t n);

/* A `main` for programs without libFuzzer. The target gets each file named by an argument, or lying
 * in a directory named by an argument; then N inputs made from these files, the same in every run.
 * "-runs=N" sets N, which is 2000 by default. Returns the exit status. */
FB_TEST_API int fb_test_fuzz_main(
    int argc, char **argv, int (*target)(const uint8_t *data, size_t n));

#ifdef __cplusplus
#define FB_TEST_C extern "C"
#else
#define FB_TEST_C extern
#endif

/* Makes a source file a target for libFuzzer: FB_TEST_FUZZ(fb_protocol_upper, "upper;") */
#define FB_TEST_FUZZ(protocol, server)                                                             \
    FB_TEST_C int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);                           \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)                                      \
    {                                                                                              \
        return fb_test_fuzz(&(protocol), (server), data, n);                                       \
    }

/* Defines a `main` for a target, unless compiled with -DFB_TEST_LIBFUZZER for libFuzzer. */
#ifdef FB_TEST_LIBFUZZER
#define FB_TEST_FUZZ_MAIN
#else
#define FB_TEST_FUZZ_MAIN                                                                          \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return fb_test_fuzz_main(argc, argv, LLVMFuzzerTestOneInput);                              \
    }
#endif

#ifdef __cplusplus
}
#endif

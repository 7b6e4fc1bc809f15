/* SPDX-License-Identifier: BSD-2-Clause */
/* Forkbeard's test kit: drives a protocol without a daemon. What runs is the daemon's own worker with
 * its sessions, buffers, timers and limits; only the kernel is simulated: the sockets are in memory,
 * time passes when the test says so, and random numbers come from a seed. So a test opens no port,
 * waits for nothing, and does the same each time.
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
 * Test and protocol are compiled with the flags of pkg-config forkbeard-test (FB_STATIC is among
 * them) and linked with its libraries into one program. Build it with -fsanitize=address,undefined:
 * then what a protocol does to its own memory is found too; input is lent in blocks of exactly its
 * size, and a connection's state may not be touched when it has ended.
 *
 * Calls that ask what has happened (fb_test_heard() and so on) first let the worker do what there is
 * to do. A mistake in the use of these calls ends the program with a line that says which. One thread
 * uses a test at a time. */
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

/* A worker with one server, and its world. */
typedef struct fb_test fb_test;
/* The other end of one of its connections: a client, or a server that it has connected to. */
typedef struct fb_test_peer fb_test_peer;
/* An address that the protocol can connect to. */
typedef struct fb_test_server fb_test_server;

/* ---- A test ---- */

typedef struct fb_test_options {
    size_t size;                 /* sizeof(fb_test_options) */
    const char *server;          /* what stands in `server {}` besides `listen`: "upper; max 4k;" */
    const char *stream;          /* ... in `stream {}` besides the server; NULL: nothing */
    const char *main;            /* ... outside of it: "threads 2;"; NULL: nothing */
    uint32_t worker_connections; /* 0: 512 */
    /* Not 0: the network makes all the trouble that a right protocol cannot notice. Bytes arrive and
     * leave in parts, later than they could, and events come without a reason. */
    uint32_t trouble;
    uint64_t seed; /* of random numbers, and of what trouble there is */
    /* What the protocol may begin to say instead of what is expected, in conversations in which an
     * allocation has failed: "-ERR"; "": anything; NULL: nothing */
    const char *excuse;
} fb_test_options;

/* A worker that has started, of a configuration that has one server of the protocol. NULL after the
 * mistakes have been printed. It begins at 2026-11-21 09:30:00 UTC. */
FB_TEST_API fb_test *fb_test_start(const fb_protocol *protocol, const char *server);
FB_TEST_API fb_test *fb_test_start_with(
    const fb_protocol *protocol, const fb_test_options *options);

/* Ends the worker, with FB_DRAINED for who is still connected, and sets *test to NULL; peers and
 * servers go with it. Returns the number of faults. Each has been printed as one line:
 *  - a call on a connection that had ended (its place is not another's for a long time);
 *  - a line of level alert about a connection, such as that `data` consumed more than there was;
 *  - a descriptor that is still open although it was not before the start, or the other way round;
 *  - memory of connections, timers or connections that are left, or `closed` that did not come once;
 *  - a worker that never comes to rest. */
FB_TEST_API int fb_test_end(fb_test **test);
/* How many there were so far. */
FB_TEST_API int fb_test_faults(const fb_test *test);

/* For the SDK's calls that take a worker, such as fb_map_get(). Between the calls of the kit a test
 * may make any of the SDK's, as a callback may. */
FB_TEST_API fb_worker *fb_test_worker(fb_test *test);
/* The error log so far, of all levels: lines such as "upper: [info] *1 session ended: ...". Lent
 * until the next call. */
FB_TEST_API const char *fb_test_logged(fb_test *test);

/* ---- Peers ---- */

/* A client that connects, from 192.0.2.1 to 192.0.2.80:80. With all worker_connections in use it
 * waits; a worker that drains leaves it waiting. */
FB_TEST_API fb_test_peer *fb_test_connect(fb_test *test);

/* n bytes, which arrive together. What is said to a closed connection is lost. */
FB_TEST_API void fb_test_say(fb_test_peer *peer, const void *p, size_t n);
FB_TEST_API void fb_test_says(fb_test_peer *peer, const char *text);
/* Ends its half, behind what it has said. After this it says nothing more. */
FB_TEST_API void fb_test_shut(fb_test_peer *peer);
/* Breaks the connection, behind what it has said. */
FB_TEST_API void fb_test_reset(fb_test_peer *peer);
/* From now on it takes n more bytes, and then none; SIZE_MAX, as at first: all. */
FB_TEST_API void fb_test_take(fb_test_peer *peer, size_t n);

/* What it has received and not forgotten; lent until the next call with this peer. */
FB_TEST_API fb_bytes fb_test_heard(fb_test_peer *peer);
FB_TEST_API void fb_test_forget(fb_test_peer *peer);
/* Whether it would read the end: the protocol has shut down its half, or closed. */
FB_TEST_API int fb_test_has_ended(fb_test_peer *peer);
/* Whether the connection is closed: nobody listens to it any more. */
FB_TEST_API int fb_test_is_closed(fb_test_peer *peer);
/* Whether the protocol has broken it: fb_abort(). */
FB_TEST_API int fb_test_was_reset(fb_test_peer *peer);

/* ---- Servers for fb_connect() ---- */

typedef enum fb_test_reply {
    FB_TEST_ACCEPTS,
    FB_TEST_REFUSES,
    FB_TEST_SILENT, /* the connect stays without an answer until it is one of the others */
} fb_test_reply;

/* There is a server at the address ("10.0.0.1:80", "unix:/path"), which does so; or from now on does
 * so, if it is there already. Where there is none, connections are refused. */
FB_TEST_API fb_test_server *fb_test_serve(fb_test *test, const char *address, fb_test_reply reply);
/* The first of the connections to it that was not given out yet; NULL without one. */
FB_TEST_API fb_test_peer *fb_test_accept(fb_test_server *server);

/* ---- The worker ---- */

/* Lets it do what there is to do, the jobs of fb_run() too, which run on threads as always. */
FB_TEST_API void fb_test_run(fb_test *test);
/* Time passes: timers expire one after the other, each with what follows from it. */
FB_TEST_API void fb_test_pass(fb_test *test, uint64_t ms);
/* It takes no more clients and begins to end, as when the daemon reloads; `deadline` in ms is
 * worker_shutdown_timeout; 0: none. */
FB_TEST_API void fb_test_drain(fb_test *test, uint64_t deadline);
/* Of the allocations for connections, those of fb_alloc() too, the next `after` succeed and then n
 * fail. */
FB_TEST_API void fb_test_refuse_memory(fb_test *test, uint64_t after, uint64_t n);
/* How many were asked for since the start. */
FB_TEST_API uint64_t fb_test_allocations(const fb_test *test);

/* ---- Conversations ---- */

/* A step of a script; made by the macros below. */
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
};

/* clang-format off */
/* The client says a string (without its NUL), or bytes. */
#define FB_TEST_SAY(text) { FB_TEST_ACT_SAY, (text), sizeof(text) - 1 }
#define FB_TEST_SAY_BYTES(p, n) { FB_TEST_ACT_SAY, (p), (n) }
/* It hears exactly these next, or n whatever they are. */
#define FB_TEST_EXPECT(text) { FB_TEST_ACT_EXPECT, (text), sizeof(text) - 1 }
#define FB_TEST_EXPECT_BYTES(p, n) { FB_TEST_ACT_EXPECT, (p), (n) }
#define FB_TEST_EXPECT_ANY(n) { FB_TEST_ACT_EXPECT_ANY, NULL, (n) }
/* It has heard no more than was expected, and the protocol has ended its half; or has closed, if
 * need be when the client has ended its half too; or has broken the connection. */
#define FB_TEST_EXPECT_END() { FB_TEST_ACT_EXPECT_END, NULL, 0 }
#define FB_TEST_EXPECT_CLOSED() { FB_TEST_ACT_EXPECT_CLOSED, NULL, 0 }
#define FB_TEST_EXPECT_RESET() { FB_TEST_ACT_EXPECT_RESET, NULL, 0 }
/* It ends its half; it breaks the connection. */
#define FB_TEST_SHUT() { FB_TEST_ACT_SHUT, NULL, 0 }
#define FB_TEST_RESET() { FB_TEST_ACT_RESET, NULL, 0 }
/* fb_test_pass() and fb_test_drain() */
#define FB_TEST_PASS(ms) { FB_TEST_ACT_PASS, NULL, (ms) }
#define FB_TEST_DRAIN(deadline) { FB_TEST_ACT_DRAIN, NULL, (deadline) }
/* From now on the peer is number i (below FB_TEST_PEERS), which connects if it has not; at first it
 * is 0. Or it becomes a server's end: of the next connection that was made to the address. */
#define FB_TEST_PEER(i) { FB_TEST_ACT_PEER, NULL, (i) }
#define FB_TEST_SERVER(i, address) { FB_TEST_ACT_SERVER, (address), (i) }
/* From now on the server at the address does so: an fb_test_reply. At first all accept. */
#define FB_TEST_REPLY(address, reply) { FB_TEST_ACT_REPLY, (address), (reply) }
/* clang-format on */

#define FB_TEST_PEERS 16
#define FB_TEST_SCRIPT(script) (script), sizeof(script) / sizeof((script)[0])

/* Plays the script, and again
 *  - with what is said cut into single bytes, and in two, at one place after the other;
 *  - with peers that take one byte at a time (of much output a few), or nothing before it is expected;
 *  - on a network that makes trouble (see fb_test_options);
 *  - up to each step, and to the middle of what is said, where then the peer breaks the connection,
 *    or ends its half: then nothing but faults counts, and after a break that this peer has heard
 *    nothing else than was expected;
 *  - with one allocation that fails, one after the other: then no peer may hear anything else (see
 *    `excuse`), but less.
 * Of long scripts a part of the places is tried. If the script fails as it is, that is all.
 *
 * Returns the number of failures, faults included. Each has been printed, with what was done and the
 * step, counted from 0: "upper: cut at byte 7: step 3: expected "HELLO\n", heard "HEL"". With
 * FB_TEST_VERBOSE in the environment each play is announced, which tells where one crashes. */
FB_TEST_API int fb_test_converse(
    const fb_protocol *protocol, const char *server, const fb_test_step *script, size_t n);
FB_TEST_API int fb_test_converse_with(const fb_protocol *protocol, const fb_test_options *options,
    const fb_test_step *script, size_t n);

/* ---- Fuzzing ---- */

/* One client that says these bytes, in pieces and with pauses that the first byte chooses, and ends.
 * A fault aborts the program. Returns 0. */
FB_TEST_API int fb_test_fuzz(
    const fb_protocol *protocol, const char *server, const uint8_t *data, size_t n);

/* Feeds the target with each file that an argument names, or that lies in a directory which it names,
 * and with as many inputs that it makes from these, always the same ones, as "-runs=N" says, 2000 by
 * default. The `main` of those who have no libFuzzer. */
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

/* ... which also runs without it; for it, compile with -DFB_TEST_LIBFUZZER. */
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

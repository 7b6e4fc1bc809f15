/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers for a client: an address, a name, a group of `upstream {}`, or text with variables
 * that names a server. Part of <forkbeard/forkbeard.h>, with the same rules. Since API 4.
 *
 * The calls are functions of a table, the interface "upstream" of version 1, from fb_interface(). A
 * protocol asks for a server, connects to its target, reports the result, and may ask again. The
 * daemon does the rest: the group's balancer, marks of failures, limits, names, state shared by
 * workers and the variables $upstream_... */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of a choice. */
typedef enum fb_choice {
    FB_CHOICE_SERVER = 1, /* a server to connect to was found */
    FB_CHOICE_WAITS,      /* for the address of a name, or in the group's `queue` */
    FB_CHOICE_NONE,       /* no server is left: all are down, failed, full, or were tried */
    FB_CHOICE_INVALID,    /* the text with variables is neither an address nor a name with an
                             address; or a try of the session runs or waits */
    FB_CHOICE_NO_MEMORY,
} fb_choice;

/* How a try has gone. */
typedef enum fb_try_end {
    FB_TRY_SERVED = 1, /* the session was served, or ended without a fault of the server */
    FB_TRY_FAILED,     /* the server was unreachable, or has broken its duty, and is marked */
    FB_TRY_UNUSED,     /* the server was not asked, as for want of memory, and is not marked */
    FB_TRY_SKIPPED,    /* unreachable from this host, as for want of a local port: the server is
                          not marked, and not tried again by the session */
} fb_try_end;

/* An unknown time. */
#define FB_NO_TIME UINT64_MAX

/* A session's try of a server. Owned by the daemon, and readable until the return of the callback
 * that was given the try, or has called choose(). Later versions only append fields. */
typedef struct fb_try {
    const fb_target *target;   /* to connect to; lasts until end() */
    const char *server;        /* the server's name in its group, or the text of the address */
    uint32_t left;             /* servers for further choose() calls; may fill meanwhile */
    uint32_t wants_first_byte; /* 1: first_byte() is to be called, but for fb_pipe() */
    const char *host;          /* the group's name, or the text of a single address, for tls_name of
                         fb_connect_with() */
} fb_try;

/* A check due for one server. Owned by the daemon, and valid until probed(). Later versions only
 * append fields. */
typedef struct fb_probe {
    const fb_target *target; /* to connect to */
    fb_bytes send;           /* to be sent then; perhaps none */
    uint64_t timeout;        /* the most ms for the whole check, from the claim on, at least 1;
                                enforced by the protocol. A second later another worker may make
                                the check, and the outcome of this one is dropped. */
    uint32_t expects;        /* 1: the server has to answer; verdict() judges */
    uint32_t reserved;
    const char *host; /* as of fb_try */
} fb_probe;

/* The meaning of a server's answer to a check. */
typedef enum fb_verdict {
    FB_VERDICT_PASSED = 1, /* right, whatever follows */
    FB_VERDICT_MORE,       /* the bytes that follow decide */
    FB_VERDICT_FAILED,     /* wrong, whatever follows */
} fb_verdict;

/* How a check has ended. */
typedef enum fb_probe_end {
    FB_PROBE_PASSED = 1,
    FB_PROBE_FAILED, /* the server failed the check */
    FB_PROBE_UNUSED, /* impossible, as for want of memory: another worker may make the check */
} fb_probe_end;

/* The interface "upstream", version 1. Later versions of Forkbeard only append calls, to be used
 * where `size` includes them. `client` is a client's connection that has opened and has not ended:
 * with any other connection choose() returns FB_CHOICE_NONE, and the rest do nothing. None of the
 * calls runs a callback. */
typedef struct fb_upstreams {
    size_t size; /* bytes of this table */

    /* Chooses a server not tried yet by this session. Returns FB_CHOICE_SERVER, and sets *out to
     * the try, to be ended by end(). Or returns FB_CHOICE_WAITS, and chosen(client, state, choice,
     * try) is called once from the loop, never as FB_CHOICE_WAITS, unless the client ends before;
     * `state` is the client's, `try` is NULL but for FB_CHOICE_SERVER. Or returns any other choice,
     * with the reason in the error log, but for want of memory. *out is NULL but for
     * FB_CHOICE_SERVER. There is one try or wait at a time: end() comes before the next choice. The
     * first choice sets the upstream for all choices of the session. */
    fb_choice (*choose)(fb_conn *client, const fb_upstream *upstream,
        void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
        const fb_try **out);

    /* Note that the server has been connected, and that its first byte has come, for
     * $upstream_connect_time and $upstream_first_byte_time, for statistics, and for balancers by
     * time. The times begin with the choice, in ms. fb_pipe() notes the first byte of a connection
     * that the client owns; only the first call counts. Without a try, nothing happens. */
    void (*connected)(fb_conn *client);
    void (*first_byte)(fb_conn *client);

    /* Ends the try, with the bytes of the connection to the server, which may have ended in this
     * callback; NULL: no connection was made. Each try is ended once, in the client's `closed` at
     * the latest; the daemon ends a forgotten try as FB_TRY_SERVED. FB_TRY_UNUSED lets the session
     * try the server again. Does nothing without a try, and ends no wait. */
    void (*end)(fb_conn *client, const fb_conn *server, fb_try_end how);

    /* Claims a due check of a server for one worker. Another worker can claim the check when the
     * claimant dies; a draining worker claims none. Returns the check, to be ended by probed(), and
     * *wait is 0: more may be due. Or returns NULL when none is due, and sets *wait to the ms
     * before the next claim. */
    const fb_probe *(*claim)(fb_worker *worker, const fb_health_check *check, uint64_t *wait);
    /* Compares all answer bytes of the server so far, from the first on, at least one, with the
     * check's expectation. `conn` is the connection to the server, `answer` is lent. The check has
     * failed if there is no verdict when the server ends, or when the protocol reads no more. */
    fb_verdict (*verdict)(fb_conn *conn, const fb_probe *probe, fb_bytes answer);
    /* Ends and frees the check. For the error log, `doing`, lent and never NULL, names the last
     * activity, "connecting to upstream" for instance, and `error` is the errno of a failure, or 0.
     * A check without this call is unused when the worker ends. */
    void (*probed)(
        fb_worker *worker, const fb_probe *probe, fb_probe_end how, const char *doing, int error);

    /* Lets a waiting session with a stopped client end with its client: when the client has ended
     * its half, and no input from before is left, the connection is closed within a second, with
     * FB_PEER_GONE, and `chosen` is not called. Without a wait, does nothing. Since API 4. */
    void (*end_with_client)(fb_conn *client);
} fb_upstreams;

/* Describes a check of the servers of a group. */
typedef struct fb_health_options {
    size_t size;             /* sizeof(fb_health_options) */
    const char *const *args; /* interval=5s, match=NAME and the like, as in nginx */
    uint32_t arg_n;
    uint32_t reserved;
    uint64_t timeout; /* the most ms for a check, at most INT32_MAX; 0: 5000 */
} fb_health_options;

/* Reads a destination for clients: "10.0.0.1:80", "unix:/path", the name of an `upstream {}`
 * anywhere in the configuration, "name:80", or text with variables that results in one of these;
 * the text is copied. The upstream lives as long as the configuration. Returns NULL after a report
 * at `directive`. Mistakes found when all has been read, such as a name without a port and without
 * an `upstream {}`, are reported there, too. The protocol needs no FB_NEEDS_CONNECT for the
 * servers. For `set` and conf_done alone. */
FB_SDK const fb_upstream *fb_conf_upstream(fb_conf *conf, const char *directive, const char *text);
/* Declares a check of the servers of a group with a `zone`; the options' arguments live as long as
 * the configuration. Returns NULL after a report at `directive`. Mistakes elsewhere are reported
 * there, too, when all has been read. For conf_done alone. */
FB_SDK const fb_health_check *fb_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options);

#ifdef __cplusplus
}
#endif

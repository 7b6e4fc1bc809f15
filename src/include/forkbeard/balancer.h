/* SPDX-License-Identifier: BSD-2-Clause */
/* The servers that a client may be connected with: an address, a name, a group of `upstream {}`, or
 * text with variables that says which. Part of <forkbeard/forkbeard.h>, whose rules hold here. All
 * of it is since API 4.
 *
 * The calls are functions of a table, the interface "upstream" of version 1, which fb_interface()
 * returns. A protocol asks for a server, connects to its target, says how that went, and may ask
 * again for another one. The group's balancer chooses; marks of failures, limits, names, the state
 * that workers share and the variables $upstream_... are the daemon's. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The outcome of a choice. */
typedef enum fb_choice {
    FB_CHOICE_SERVER = 1, /* there is a server to connect to */
    FB_CHOICE_WAITS,      /* for the address of a name, or in the group's `queue` */
    FB_CHOICE_NONE,       /* no server is left: each is down, failed, full, or was tried */
    FB_CHOICE_INVALID,    /* the text with variables is no address, or a name that has none; or a
                             try of the session runs or waits */
    FB_CHOICE_NO_MEMORY,
} fb_choice;

/* How a try has gone. */
typedef enum fb_try_end {
    FB_TRY_SERVED = 1, /* the session was served, or its end is not the server's fault */
    FB_TRY_FAILED,     /* the server could not be reached, or has broken its duty: it is marked */
    FB_TRY_UNUSED,     /* the server was not asked, such as for want of memory: nothing is marked */
    FB_TRY_SKIPPED,    /* unreachable from this host, such as for want of a local port:
                          nothing is marked, and the session does not try the server again */
} fb_try_end;

/* A time that is not known. */
#define FB_NO_TIME UINT64_MAX

/* A try to have a server serve the session. It is the daemon's, and may be read until the callback
 * returns that was given it, or has asked for it. Later versions only append fields. */
typedef struct fb_try {
    const fb_target *target;   /* to connect to; lasts until end() */
    const char *server;        /* the server's name in its group, or the address's text */
    uint32_t left;             /* servers for further choose() calls; may fill meanwhile */
    uint32_t wants_first_byte; /* 1: first_byte() is to be called; 0: nobody asks for the time */
} fb_try;

/* A check of one server that is to be made. It is the daemon's, and lasts until probed(). Later
 * versions only append fields. */
typedef struct fb_probe {
    const fb_target *target; /* to connect to */
    fb_bytes send;           /* to be sent then; perhaps none */
    uint64_t timeout;        /* ms that all of it may take, from the claim on, at least 1; the
                                protocol sees to it. A second later another worker may make the
                                check, and the outcome of this one is dropped. */
    uint32_t expects;        /* 1: the server has to answer; verdict() says what */
    uint32_t reserved;
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
    FB_PROBE_FAILED, /* the server failed in its duty */
    FB_PROBE_UNUSED, /* could not be made, such as for want of memory: another worker may */
} fb_probe_end;

/* The interface "upstream", version 1. Later versions of Forkbeard only append calls: one that was
 * added later may be used where `size` says that it is there. `client` is a client's connection,
 * which has opened and has not ended: with any other one choose() returns FB_CHOICE_NONE, and the
 * others do nothing. None of the calls runs a callback. */
typedef struct fb_upstreams {
    size_t size; /* bytes of this table */

    /* Chooses a server among those that this session has not tried. Returns FB_CHOICE_SERVER, and
     * sets *out to the try, which end() ends; or FB_CHOICE_WAITS, and chosen(client, state, choice,
     * try) is called once from the loop, never as FB_CHOICE_WAITS, unless the client ends before;
     * `state` is that of the client, `try` is NULL but for FB_CHOICE_SERVER. Or any other choice:
     * the error log has the reason, but for want of memory. *out is NULL but for FB_CHOICE_SERVER.
     * There is one try or wait at a time: end() comes before the next choice. The first choice of
     * a session says of which upstream all are. */
    fb_choice (*choose)(fb_conn *client, const fb_upstream *upstream,
        void (*chosen)(fb_conn *client, void *state, fb_choice choice, const fb_try *run),
        const fb_try **out);

    /* Note that the server has been connected, and that its first byte has come, for
     * $upstream_connect_time and $upstream_first_byte_time and the balancers that compare times.
     * The times begin with the choice, in ms. Without a try, they do nothing. */
    void (*connected)(fb_conn *client);
    void (*first_byte)(fb_conn *client);

    /* Ends the try, with the bytes of the connection to the server, which may have ended in this
     * callback; NULL: there was none. Each try is ended once, in the client's `closed` at the
     * latest: the daemon ends one that is left as FB_TRY_SERVED. FB_TRY_UNUSED lets the session
     * try the server again. Does nothing without a try, and ends no wait. */
    void (*end)(fb_conn *client, const fb_conn *server, fb_try_end how);

    /* Claims a check of a server that is due. Each is claimed by one of all workers, and by another
     * one when that dies; a worker that drains claims none. Returns the check, which probed() ends,
     * and *wait is 0: another one may be due. Or NULL where none is, and sets *wait to the ms after
     * which to ask again. */
    const fb_probe *(*claim)(fb_worker *worker, const fb_health_check *check, uint64_t *wait);
    /* Compares all that the server has answered so far, at least one byte, from the first one on,
     * with what the check expects. `conn` is the connection to it, `answer` is lent. Where the
     * server ends, or the protocol reads no more of it, before there is a verdict, the check has
     * failed. */
    fb_verdict (*verdict)(fb_conn *conn, const fb_probe *probe, fb_bytes answer);
    /* Ends the check, which is gone then. `doing`, lent and never NULL, is what the protocol was
     * doing when it ended, "connecting to upstream" for instance, and `error` the errno with which
     * that has failed, or 0, for the error log. A check that is left is unused when the worker
     * ends. */
    void (*probed)(
        fb_worker *worker, const fb_probe *probe, fb_probe_end how, const char *doing, int error);

    /* Lets a session that waits, and whose client is stopped, end with its client: where that has
     * ended its half, and nothing that it has sent before is left, the connection is closed within
     * a second, with FB_PEER_GONE, in the place of `chosen`. Without a wait, does nothing. Since
     * API 4. */
    void (*end_with_client)(fb_conn *client);
} fb_upstreams;

/* Describes a check of the servers of a group. */
typedef struct fb_health_options {
    size_t size;             /* sizeof(fb_health_options) */
    const char *const *args; /* interval=5s, match=NAME and the like, as nginx has them */
    uint32_t arg_n;
    uint32_t reserved;
    uint64_t timeout; /* ms that a check may take, INT32_MAX at most; 0: 5000 */
} fb_health_options;

/* Reads where clients are to be connected to: "10.0.0.1:80", "unix:/path", the name of an `upstream
 * {}` of the configuration, wherever it stands, "name:80", or text with variables that is one of
 * these in the end; the text is copied. It lives as long as the configuration. Returns NULL after a
 * report at `directive`; mistakes that show when all has been read, such as a name without a port
 * that no `upstream {}` has, are reported there, too. A protocol that calls it needs no
 * FB_NEEDS_CONNECT for it. For `set` and conf_done alone. */
FB_SDK const fb_upstream *fb_conf_upstream(fb_conf *conf, const char *directive, const char *text);
/* Declares a check of the servers of a group, which has to have a `zone`; the options' arguments
 * live as long as the configuration. Returns NULL after a report at `directive`. Mistakes in what
 * stands elsewhere are reported there, too, when all has been read. For conf_done alone. */
FB_SDK const fb_health_check *fb_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options);

#ifdef __cplusplus
}
#endif

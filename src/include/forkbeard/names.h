/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: the addresses, services and hosts that servers of names know of. Part of
 * <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/types.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Questions. The numbers but the first are those of the records. */
typedef enum fb_name_type {
    FB_NAME_ADDRESSES = 0, /* A and AAAA, as `ipv4=` and `ipv6=` of `resolver` allow */
    FB_NAME_A = 1,
    FB_NAME_PTR = 12, /* the names of an address */
    FB_NAME_AAAA = 28,
    FB_NAME_SRV = 33, /* the hosts of a service: "_imap._tcp.example.org" */
} fb_name_type;

/* How it has ended. */
typedef enum fb_name_outcome {
    FB_NAME_FOUND = 1,
    FB_NAME_ABSENT,    /* no such name exists */
    FB_NAME_NO_DATA,   /* the name has no record of this type */
    FB_NAME_TIMED_OUT, /* no answer came in time */
    FB_NAME_FAILED,    /* the servers cannot be reached, refuse, or have failed themselves */
    FB_NAME_BROKEN,    /* the answer makes no sense */
    FB_NAME_NO_MEMORY, /* the worker had no memory, or no descriptor, to ask or to tell */
    FB_NAME_ENDED,     /* the worker ends */
} fb_name_outcome;

/* A record of an answer. Later versions only append fields. */
typedef struct fb_name_record {
    uint32_t type;                  /* FB_NAME_A, FB_NAME_AAAA, FB_NAME_SRV or FB_NAME_PTR */
    uint32_t ttl;                   /* seconds for which it still holds */
    const struct sockaddr *address; /* A, AAAA: with the port that was asked for; else NULL */
    socklen_t address_n;
    uint16_t port, priority, weight; /* SRV */
    const char
        *name; /* SRV: the host, "." when there is no such service; PTR: the name; else NULL */
} fb_name_record;

/* The end of a resolution, lent until the callback returns. Later versions only append fields. */
typedef struct fb_names {
    fb_name_outcome outcome;
    uint32_t type;         /* the fb_name_type that was asked for */
    const char *name;      /* the name that was asked for; of an address (PTR) its text */
    const char *canonical; /* the name that the records belong to, behind all aliases; or NULL */
    const char *why;       /* in words; NULL: found */
    uint32_t ttl;          /* seconds of validity of all parts */
    size_t n;              /* 0 unless it was found */
    const fb_name_record *records; /* A before AAAA; SRV by priority, then the greatest weight */
} fb_names;

/* Options of fb_resolve(). A field that is 0 or NULL is the default. */
typedef struct fb_resolve_options {
    size_t size; /* sizeof(fb_resolve_options) */

    /* The connection that asks: its server's `resolver` and `resolver_timeout` are used, and the
     * resolution is cancelled when the connection ends or fb_become() gives it to others. NULL: the
     * worker asks, by those of stream {}. */
    fb_conn *owner;
    const struct sockaddr *address; /* FB_NAME_PTR: the address, in the place of the name */
    uint64_t timeout;               /* ms; 0: resolver_timeout */
    uint16_t port;                  /* given to the addresses that are found */
} fb_resolve_options;

/* The most resolutions of a worker that are under way at once. */
#define FB_RESOLUTIONS_MAX 65536

/* Asks for a name, and calls resolved(worker, names, arg) once, from the loop and never within this
 * call: also when the answer is known already, and when the worker ends (before worker_stop, as
 * FB_NAME_ENDED). It is not called after fb_resolve_cancel(), and when the owner has ended. `name`
 * has at most 253 printable characters; a numeric address is answered by itself, and for
 * FB_NAME_PTR it may stand in the place of a name in in-addr.arpa or ip6.arpa. Without `resolver`
 * /etc/hosts and the system's servers are asked, with the system's search list. Questions of one
 * name are asked once, and answers are kept in the worker for as long as they hold. Needs
 * FB_NEEDS_RESOLVER. May be called from worker_start on; a resolution keeps no worker alive that
 * drains. `options` may be NULL.
 *
 * Returns the resolution, which is valid until `resolved` is called, or its owner ends. Returns
 * NULL, and nothing follows, with errno: EINVAL when it is no name, address or type, EPERM without
 * FB_NEEDS_RESOLVER, ENOSYS in a build without c-ares, EAGAIN when there are FB_RESOLUTIONS_MAX,
 * ECANCELED when the owner or the worker is ending, ENOMEM. Since API 4. */
FB_SDK fb_resolution *fb_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg);
/* Ends the resolution, whose `resolved` is not called; also from within the callback of another
 * one. Since API 4. */
FB_SDK void fb_resolve_cancel(fb_resolution *resolution);

#ifdef __cplusplus
}
#endif

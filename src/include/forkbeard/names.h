/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: addresses, services and hosts from servers of names. Part of <forkbeard/forkbeard.h>, with
 * the same rules. */
#pragma once

#include <forkbeard/types.h>

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Questions. All numbers but the first are record types of DNS. */
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
    FB_NAME_NO_DATA,   /* the name has no record of the type */
    FB_NAME_TIMED_OUT, /* no answer came in time */
    FB_NAME_FAILED,    /* the servers cannot be reached, refuse, or have failed themselves */
    FB_NAME_BROKEN,    /* the answer makes no sense */
    FB_NAME_NO_MEMORY, /* the worker had no memory, or no descriptor, to ask or to tell */
    FB_NAME_ENDED,     /* the worker ends */
} fb_name_outcome;

/* A record of an answer. Later versions only append fields. */
typedef struct fb_name_record {
    uint32_t type;                  /* FB_NAME_A, FB_NAME_AAAA, FB_NAME_SRV or FB_NAME_PTR */
    uint32_t ttl;                   /* seconds of remaining validity */
    const struct sockaddr *address; /* A, AAAA: with the port of the question; else NULL */
    socklen_t address_n;
    uint16_t port, priority, weight; /* SRV */
    const char *name; /* SRV: the host, "." if there is no service; PTR: the name; else NULL */
} fb_name_record;

/* The end of a resolution, lent until the callback returns. Later versions only append fields. */
typedef struct fb_names {
    fb_name_outcome outcome;
    uint32_t type;                 /* the fb_name_type that was asked for */
    const char *name;              /* the name of the question; of an address (PTR) the text */
    const char *canonical;         /* the name with the records, behind all aliases; or NULL */
    const char *why;               /* in words; NULL: found */
    uint32_t ttl;                  /* seconds for which all records are valid */
    size_t n;                      /* 0 unless it was found */
    const fb_name_record *records; /* A before AAAA; SRV by priority, then the greatest weight */
} fb_names;

/* Options of fb_resolve(). A field of 0 or NULL is the default. */
typedef struct fb_resolve_options {
    size_t size; /* sizeof(fb_resolve_options) */

    /* The asking connection: `resolver` and `resolver_timeout` are its server's, and the resolution
     * is cancelled when the connection ends or fb_become() gives it away. NULL: the worker asks, by
     * the directives of stream {}. */
    fb_conn *owner;
    const struct sockaddr *address; /* FB_NAME_PTR: the address, in the place of the name */
    uint64_t timeout;               /* ms; 0: resolver_timeout */
    uint16_t port;                  /* given to the found addresses */
} fb_resolve_options;

/* The most resolutions of a worker under way at once. */
#define FB_RESOLUTIONS_MAX 65536

/* Asks for a name, and calls resolved(worker, names, arg) once, from the loop and never within this
 * call: also with a known answer, and when the worker ends (before worker_stop, as FB_NAME_ENDED);
 * but not after fb_resolve_cancel() or the end of the owner. `name` has at most 253 printable
 * characters; a numeric address needs no server, and may replace a name in in-addr.arpa or ip6.arpa
 * for FB_NAME_PTR. Without `resolver` /etc/hosts and the system's servers are asked, with the
 * system's search list. Equal questions are asked once, and the worker keeps answers while they are
 * valid. Needs FB_NEEDS_RESOLVER. May be called from worker_start on; a resolution does not keep a
 * draining worker alive. `options` may be NULL.
 *
 * Returns the resolution, valid until `resolved` is called, or the owner ends. Returns NULL, and
 * nothing follows, with errno: EINVAL for a bad name, address or type, EPERM without
 * FB_NEEDS_RESOLVER, ENOSYS in a build without c-ares, EAGAIN with FB_RESOLUTIONS_MAX under way,
 * ECANCELED when the owner or the worker is ending, ENOMEM. Since API 4. */
FB_SDK fb_resolution *fb_resolve(fb_worker *worker, const char *name, fb_name_type type,
    const fb_resolve_options *options,
    void (*resolved)(fb_worker *worker, const fb_names *names, void *arg), void *arg);
/* Ends the resolution without a call of `resolved`; also from within another one's callback. Since
 * API 4. */
FB_SDK void fb_resolve_cancel(fb_resolution *resolution);

#ifdef __cplusplus
}
#endif

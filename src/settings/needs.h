/* SPDX-License-Identifier: BSD-2-Clause */
/* Needs of the protocols beyond their connections. The sandbox of the workers allows what is listed
 * here, and denies everything else. */
#pragma once

#include <bsd/sys/queue.h>
#include <netinet/in.h>
#include <stdbool.h>

enum needs_access {
    NEEDS_TO_READ,
    NEEDS_TO_WRITE,  /* to make and remove files, too */
    NEEDS_TO_APPEND, /* to make files and to write to them, not to read */
};

struct needs_path {
    STAILQ_ENTRY(needs_path) link;
    const char *path;
    enum needs_access access;
};

/* A TCP port to connect to. */
struct needs_port {
    STAILQ_ENTRY(needs_port) link;
    in_port_t port; /* in host order */
};

/* Sum of the needs of all protocols that have a server, and of what directives of protocols have
 * asked for; see the SDK's FB_NEEDS_... */
struct needs {
    bool exec;           /* other programs */
    bool code;           /* executable memory */
    bool names;          /* the resolver of the C library */
    bool udp;            /* sockets of datagrams */
    bool resolver;       /* servers of names, which the worker asks */
    bool listen;         /* listening sockets of their own */
    bool aio;            /* kernel AIO, by `aio on` of a server */
    bool connect;        /* servers that the configuration does not name */
    bool bind;           /* local addresses of connections to servers */
    bool transparent;    /* addresses of others as these */
    bool ring;           /* a ring, which is made before: the event mechanism's own need */
    bool unix_targets;   /* unix sockets among the configuration's targets */
    const char *unknown; /* a protocol of an older SDK, which cannot declare needs; or NULL */
    STAILQ_HEAD(, needs_path) paths;
    STAILQ_HEAD(, needs_port) ports; /* the ports of the configuration's targets, each once */
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Needs of the protocols beyond their connections: the sandbox denies all other rights. */
#pragma once

#include <bsd/sys/queue.h>
#include <forkbeard/protocol.h>
#include <netinet/in.h>
#include <stdint.h>

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

/* Rights besides FB_NEEDS_... */
#define NEEDS_AIO (UINT64_C(1) << 32)  /* kernel AIO, by `aio on` of a server */
#define NEEDS_RING (UINT64_C(1) << 33) /* the event mechanism's ring, which is made before */
#define NEEDS_UNIX_TARGETS (UINT64_C(1) << 34) /* unix sockets among the configuration's targets */
#define NEEDS_KEEPER (UINT64_C(1) << 35)       /* a keeper: nothing but to shake hands */
#define NEEDS_FILES (UINT64_C(1) << 36)        /* ... and to open files of directories to read */

/* The needs of all protocols with a server, and of directives of protocols. */
struct needs {
    uint64_t rights;     /* FB_NEEDS_... and NEEDS_... */
    const char *unknown; /* a protocol of an older SDK, which cannot declare needs; or NULL */
    STAILQ_HEAD(, needs_path) paths;
    STAILQ_HEAD(, needs_port) ports; /* the ports of the configuration's targets, each once */
};

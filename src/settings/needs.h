/* SPDX-License-Identifier: BSD-2-Clause */
/* Needs of the protocols beyond their connections. The sandbox of the workers allows what is listed
 * here, and denies everything else. */
#pragma once

#include <bsd/sys/queue.h>
#include <stdbool.h>

struct needs_path {
    STAILQ_ENTRY(needs_path) link;
    const char *path;
    bool write; /* files there may be written, made and removed; else only read */
};

/* Sum of the needs of all protocols that have a server; see the SDK's FB_NEEDS_... */
struct needs {
    bool exec;           /* other programs */
    bool code;           /* executable memory */
    bool names;          /* the resolver of the C library */
    bool udp;            /* sockets of datagrams */
    bool listen;         /* listening sockets of their own */
    const char *unknown; /* a protocol of an older SDK, which cannot declare needs; or NULL */
    STAILQ_HEAD(, needs_path) paths;
};

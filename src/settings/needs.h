/* SPDX-License-Identifier: BSD-2-Clause */
/* What the protocols of a configuration need beyond their connections, which the sandbox of its workers
 * is made from. */
#pragma once

#include <bsd/sys/queue.h>
#include <stdbool.h>

struct fb_needed_path {
    STAILQ_ENTRY(fb_needed_path) link;
    const char *path;
    bool write; /* and made, and removed; else it is only read */
};

/* Of all protocols that have a server; see FB_NEEDS_... */
struct fb_needs {
    bool exec;           /* other programs */
    bool code;           /* memory that is made executable */
    bool names;          /* the resolver of the C library */
    bool udp;            /* sockets of datagrams */
    bool listen;         /* listening sockets of their own */
    const char *unknown; /* a protocol that was built before there was a way to say; or NULL */
    STAILQ_HEAD(, fb_needed_path) paths;
};

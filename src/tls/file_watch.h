/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells when files of profiles have changed: by events of their directories, and of those of each
 * symbolic link on the way, where the system has events, and else by looking at the files.
 *
 * Responsible for waiting until the files have been left alone for WATCH_QUIET_MS, so that nobody
 * reads a file that is half written. Never opens a file, and never tells which file has changed. */
#pragma once

#include "event/timer.h"
#include "tls/profile.h"

/* From an event to a look at the files, and the least time without a change before it is told. */
#define WATCH_LOOK_MS 300
#define WATCH_QUIET_MS 1000
/* Between looks, where not all directories can be watched. */
#define WATCH_OFTEN_MS 10000

struct tls_file_watch {
    const struct tls_profiles *profiles; /* NULL: closed */
    struct timers *timers;
    void (*changed)(struct tls_file_watch *watch);
    int fd; /* readable once a directory has changed; -1: the system cannot tell, or closed */
    struct timer look;
    bool begun;    /* the files were looked at */
    bool soon;     /* the next look is about an event, or about a change */
    bool changes;  /* the latest look has found a change, which is not told yet */
    uint32_t seen; /* checksum of the status of all files at the latest look */
};

/* Begins, from the files as they are now. The owner calls tls_file_watch_take() when `fd` is
 * readable. What is given outlives the watch, which does not move. */
void tls_file_watch_open(struct tls_file_watch *watch, const struct tls_profiles *profiles,
    struct timers *timers, void (*changed)(struct tls_file_watch *watch));
void tls_file_watch_take(struct tls_file_watch *watch);
/* Ends a watch, or does nothing for zeroed memory. */
void tls_file_watch_close(struct tls_file_watch *watch);

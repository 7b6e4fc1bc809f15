/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a protocol or its library, on the worker's loop. Part of <forkbeard/forkbeard.h>,
 * with the same rules. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events of a watch, asked for and reported. An error, and the end of the other side, are reported
 * as whatever was asked for: the next read or write tells more. */
#define FB_WATCH_READ 1u
#define FB_WATCH_WRITE 2u

/* The most watches of a worker, all protocols together. */
#define FB_WATCHES_MAX 4096

/* Watches a descriptor: a socket of any kind, a pipe, or anything else the system can wait for.
 * `ready` is called with the ready ones of `events` (FB_WATCH_...; 0: none for now), once a turn of
 * the loop while the descriptor is ready, so not all input need be taken. The descriptor stays the
 * caller's, should be non-blocking, and is to be closed after fb_unwatch(); another callback of the
 * same turn may have taken the input. A watch does not keep a draining worker alive, and is removed
 * when worker_stop has returned. May be called from worker_start on. `arg` is given to `ready`, and
 * must last as long as the watch.
 *
 * Returns NULL, and nothing follows, with errno: EBADF when the descriptor is not open, EPERM
 * when it is always ready, like a file, EEXIST when it is watched already, EINVAL when `events`
 * has other bits, EMFILE with FB_WATCHES_MAX watches or a number too great for the mechanism,
 * ENOMEM. */
FB_SDK fb_watch *fb_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg);
/* Changes the events from now on. Returns 0; or -1 with errno, and nothing has changed: EINVAL and
 * ENOMEM as above, EBADF when the descriptor was closed, which the log calls a mistake of the
 * protocol. */
FB_SDK int fb_watch_set(fb_watch *watch, unsigned events);
/* Ends the watch, also from within `ready`, which is not called again. When the descriptor was
 * closed before, the log reports a mistake of the protocol. */
FB_SDK void fb_unwatch(fb_watch *watch);

#ifdef __cplusplus
}
#endif

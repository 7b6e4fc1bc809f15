/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of the protocol's own, or of a library that it uses, on the worker's loop. Part of
 * <forkbeard/forkbeard.h>, whose rules hold here. */
#pragma once

#include <forkbeard/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events that a watch waits for, and is told. An error, and the end of the other side, are told as
 * whatever is waited for: the next read or write says what it is. */
#define FB_WATCH_READ 1u
#define FB_WATCH_WRITE 2u

/* The most watches of a worker, of all its protocols together. */
#define FB_WATCHES_MAX 4096

/* Watches a descriptor: a socket of any kind, a pipe, or what else the system can wait for. `ready`
 * is called with those of `events` (FB_WATCH_...; 0: none for now) for which the descriptor is
 * ready, once a turn of the loop as long as it is, so that it need not take all that is there. The
 * descriptor stays the caller's, who should have made it non-blocking, and closes it after
 * fb_unwatch(); another callback of the same turn may have taken what was there. A watch does not
 * keep a draining worker alive, and is removed when worker_stop has returned. May be called from
 * worker_start on. `arg` is given to `ready`, and must last as long as the watch.
 *
 * Returns NULL, and nothing follows, with errno: EBADF when it is no open descriptor, EPERM when it
 * is a file or anything else that is always ready, EEXIST when it is watched already, EINVAL when
 * `events` has other bits, EMFILE when there are FB_WATCHES_MAX watches or the mechanism cannot
 * have so great a number, ENOMEM. */
FB_SDK fb_watch *fb_watch_fd(fb_worker *worker, int fd, unsigned events,
    void (*ready)(fb_worker *worker, fb_watch *watch, unsigned events, void *arg), void *arg);
/* Waits for these events from now on. Returns 0; or -1 with errno, and nothing has changed: EINVAL
 * and ENOMEM as above, EBADF when the descriptor was closed, which the log names as the protocol's
 * mistake. */
FB_SDK int fb_watch_set(fb_watch *watch, unsigned events);
/* Ends the watch, whose `ready` is not called again; also from within it. A descriptor that was
 * closed before is named in the log as the protocol's mistake. */
FB_SDK void fb_unwatch(fb_watch *watch);

#ifdef __cplusplus
}
#endif

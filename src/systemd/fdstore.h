/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's store of descriptors. It keeps copies of our listening sockets while we
 * are restarted, so that clients wait in their queues instead of being refused. Sockets that the
 * manager has opened itself are never stored. */
#pragma once

#include "net/adopted.h"

/* The name of a socket in the store: this, or this with a suffix for the address. */
#define FB_STORE_NAME "forkbeard"
#define FB_STORE_NAME_MAX 32

/* Whether a descriptor that is passed under this name was stored by us. */
bool fb_store_is_name(const char *name);

/* Stores the sockets of these listeners, which serve, as far as they are not stored yet. */
void fb_store_listeners(struct fb_listeners *listeners, struct fb_log *log);
/* Drops the copies of a listener's sockets, which are not listened on any more. */
void fb_store_forget(struct fb_listener *listener, struct fb_log *log);
/* Drops the copies that no listener has taken over; before fb_inherited_settle(). `inherited`
 * may be NULL. */
void fb_store_forget_unclaimed(
    struct fb_inherited *inherited, const struct fb_listeners *serving, struct fb_log *log);

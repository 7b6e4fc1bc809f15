/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's store of descriptors: it keeps listening sockets that are ours open while we
 * are restarted, so that clients wait in their queues instead of being refused. */
#pragma once

#include "net/inherited.h"

/* A name in the store is this, or this with a suffix for the address. */
#define FB_STORE_NAME "forkbeard"
#define FB_STORE_NAME_MAX 32

/* Whether what is passed under this name was stored by us. */
bool fb_store_is_name(const char *name);

/* They listen: has those stored that are not yet. What the service manager has opened is not. */
void fb_store_listeners(struct fb_listeners *listeners, struct fb_log *log);
/* It is not listened on any more: has its sockets forgotten, if they are stored. */
void fb_store_forget(struct fb_listener *listener, struct fb_log *log);
/* Before fb_inherited_settle(): has those forgotten that nobody has taken over. `inherited` may be
 * NULL. */
void fb_store_forget_unclaimed(
    struct fb_inherited *inherited, const struct fb_listeners *serving, struct fb_log *log);

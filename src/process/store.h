/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager's store of descriptors: it keeps listening sockets that are ours open while we
 * are restarted, so that clients wait in their queues instead of being refused. */
#pragma once

#include "net/listener.h"

/* Names in the store begin so; what follows is the address's. */
#define FB_STORE_PREFIX "forkbeard-"

/* They listen: has those stored that are not yet. */
void fb_store_listeners(struct fb_listeners *listeners, struct fb_log *log);
/* It is not listened on any more: has its sockets forgotten, if they are stored. */
void fb_store_forget(struct fb_listener *listener, struct fb_log *log);
/* Its name in the store. */
#define FB_STORE_NAME_MAX 32
void fb_store_name(const struct fb_listener *listener, char name[FB_STORE_NAME_MAX]);

/* SPDX-License-Identifier: BSD-2-Clause */
#include "process/store.h"

#include "process/notify.h"

#include <inttypes.h>
#include <stdio.h>

/* FNV-1a: an address has other characters, and may be longer, than a name in the store. */
void fb_store_name(const struct fb_listener *listener, char name[FB_STORE_NAME_MAX])
{
    uint64_t h = 0xcbf29ce484222325;

    for (const char *p = listener->text; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3;
    snprintf(name, FB_STORE_NAME_MAX, FB_STORE_PREFIX "%016" PRIx64, h);
}

static void store(struct fb_listener *listener, struct fb_log *log)
{
    char name[FB_STORE_NAME_MAX];

    fb_store_name(listener, name);
    for (; listener->stored_n < listener->fd_n; listener->stored_n++)
        if (fb_notify_store(log, name, listener->fds[listener->stored_n]) == -1)
            return;
}

void fb_store_listeners(struct fb_listeners *listeners, struct fb_log *log)
{
    struct fb_listener *listener;

    if (!fb_notify_is_on())
        return;
    STAILQ_FOREACH (listener, listeners, link)
        store(listener, log);
}

void fb_store_forget(struct fb_listener *listener, struct fb_log *log)
{
    char name[FB_STORE_NAME_MAX];

    if (listener->stored_n == 0)
        return;
    fb_store_name(listener, name);
    fb_notify_remove(log, name);
    listener->stored_n = 0;
}

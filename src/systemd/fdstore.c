/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores and drops copies of sockets. All sockets of one address have one name, which is made
 * from a hash of the address. */
#include "systemd/fdstore.h"

#include "systemd/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS "0123456789abcdef"
#define HASH_LENGTH 16

/* Hashes the address (FNV-1a): it may be longer than a name in the store, and have other
 * characters. */
static void name_of(const struct fb_listener *listener, char name[FB_STORE_NAME_MAX])
{
    uint64_t h = 0xcbf29ce484222325;

    for (const char *p = listener->text; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3;
    snprintf(name, FB_STORE_NAME_MAX, FB_STORE_NAME "-%016" PRIx64, h);
}

bool fb_store_is_name(const char *name)
{
    size_t n = strlen(FB_STORE_NAME);

    if (strncmp(name, FB_STORE_NAME, n) != 0)
        return false;
    name += n;
    if (*name == '\0')
        return true;
    return *name == '-' && strspn(name + 1, HASH_DIGITS) == HASH_LENGTH &&
           name[1 + HASH_LENGTH] == '\0'; /* a unit "forkbeard-x.socket" is no name of ours */
}

static void store_sockets(struct fb_listener *listener, struct fb_log *log)
{
    char name[FB_STORE_NAME_MAX];

    name_of(listener, name);
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
        if (!listener->foreign)
            store_sockets(listener, log);
}

void fb_store_forget(struct fb_listener *listener, struct fb_log *log)
{
    char name[FB_STORE_NAME_MAX];

    if (listener->stored_n == 0)
        return;
    name_of(listener, name);
    fb_notify_remove(log, name);
    listener->stored_n = 0;
}

void fb_store_forget_unclaimed(
    struct fb_inherited *inherited, const struct fb_listeners *serving, struct fb_log *log)
{
    struct fb_listener *lender;

    if (inherited == NULL || inherited->settled)
        return;
    STAILQ_FOREACH (lender, &inherited->lenders, link)
        if (fb_listener_find(serving, lender) == NULL)
            fb_store_forget(lender, log);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stores copies of sockets in the service manager, and removes them. The sockets of an address
 * share a name, made from a hash of the address. */
#include "systemd/fdstore.h"

#include "net/listener_set.h"
#include "systemd/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS "0123456789abcdef"
#define HASH_LENGTH 16

/* Hashes the address (FNV-1a), which may be too long for a name in the store, and have forbidden
 * characters. */
static void store_name_of(const struct listener *listener, char name[FDSTORE_NAME_MAX])
{
    uint64_t h = 0xcbf29ce484222325;

    for (const char *p = listener->text; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3;
    snprintf(name, FDSTORE_NAME_MAX, FDSTORE_NAME "-%016" PRIx64, h);
}

bool fdstore_is_name(const char *name)
{
    size_t n = strlen(FDSTORE_NAME);

    if (strncmp(name, FDSTORE_NAME, n) != 0)
        return false;
    name += n;
    if (*name == '\0')
        return true;
    return *name == '-' && strspn(name + 1, HASH_DIGITS) == HASH_LENGTH &&
           name[1 + HASH_LENGTH] == '\0'; /* a unit "forkbeard-x.socket" is no name of ours */
}

/* Returns false where no more can be stored for now. */
static bool store_sockets(struct listener *listener, struct log *log)
{
    char name[FDSTORE_NAME_MAX];

    store_name_of(listener, name);
    for (; listener->stored_n < listener->fd_n; listener->stored_n++)
        if (notify_store(log, name, listener->fds[listener->stored_n]) == -1)
            return false;
    return true;
}

void fdstore_add(struct listeners *listeners, struct log *log)
{
    struct listener *listener;

    if (!notify_is_on())
        return;
    STAILQ_FOREACH (listener, &listeners->list, link)
        if (!listener->foreign && !store_sockets(listener, log))
            return; /* avoids thousands of lines */
}

void fdstore_drop(struct listener *listener, struct log *log)
{
    char name[FDSTORE_NAME_MAX];

    if (listener->stored_n == 0)
        return;
    store_name_of(listener, name);
    notify_unstore(log, name);
    listener->stored_n = 0;
}

void fdstore_drop_unclaimed(
    struct adopted *adopted, const struct listeners *serving, struct log *log)
{
    struct listener *holder;

    if (adopted == NULL || adopted->finished)
        return;
    STAILQ_FOREACH (holder, &adopted->holders.list, link)
        if (listener_set_find(serving, holder) == NULL)
            fdstore_drop(holder, log);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the list of the other process's sockets, and adds received sockets to our listeners. A
 * received list is input: numbers that are no inodes match nothing. */
#include "upgrade/sockets.h"

#include "net/listener_open.h"
#include "net/listener_set.h"
#include "os/descriptor.h"
#include "upgrade/upgrade.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

void upgrade_sockets_write(struct json *json, const struct listeners *listeners)
{
    const struct listener *listener;

    json_array(json, "sockets");
    if (listeners != NULL)
        STAILQ_FOREACH (listener, &listeners->list, link)
            for (unsigned i = 0; i < listener->fd_n; i++)
                json_number(json, NULL, (int64_t)descriptor_inode(listener->fds[i]));
    json_close(json);
}

void upgrade_sockets_free(struct upgrade_sockets *sockets)
{
    assert(sockets->n == 0 || sockets->inodes != NULL);
    free(sockets->inodes);
    *sockets = (struct upgrade_sockets) { .n = 0 };
}

static int compare_inodes(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

    return (one > other) - (one < other);
}

void upgrade_sockets_read(struct upgrade_sockets *sockets, struct json_value list)
{
    struct json_value socket = { NULL, 0 };

    upgrade_sockets_free(sockets);
    while ((socket = json_next(list, socket)).text != NULL) {
        uint64_t *more = realloc(sockets->inodes, (sockets->n + 1) * sizeof(*more));

        if (more == NULL)
            break;
        sockets->inodes = more;
        more[sockets->n++] = (uint64_t)json_integer(socket, 0);
    }
    if (sockets->n > 0)
        qsort(sockets->inodes, sockets->n, sizeof(*sockets->inodes), compare_inodes);
}

bool upgrade_sockets_have(const struct upgrade_sockets *sockets, int fd)
{
    uint64_t inode = descriptor_inode(fd);

    assert(sockets->n == 0 || sockets->inodes != NULL);
    return inode != 0 && sockets->n > 0 &&
           bsearch(&inode, sockets->inodes, sockets->n, sizeof(inode), compare_inodes) != NULL;
}

/* Adds the socket to the listener of the address, unless present already; whether added. */
static bool adopt_socket(struct listeners *listeners, const struct address *address, int fd)
{
    struct listener *listener = listener_set_at(listeners, address);

    assert(fd != -1);
    if (listener == NULL)
        return false;
    for (unsigned i = 0; i < listener->fd_n; i++)
        if (descriptor_inode(listener->fds[i]) == descriptor_inode(fd))
            return false;
    return listener_add(listener, fd, false) == 0;
}

/* Adds a socket to the serving listeners. A starting generation shares listeners with the live
 * generation until its commit. */
static bool adopt_listening_socket(struct pool *pool, const struct address *address, int fd)
{
    struct generation *starting = pool->starting;
    bool added = false;

    if (starting == NULL || starting->phase == GENERATION_STARTING)
        added = adopt_socket(&pool->serving->cycle->stream.listeners, address, fd);
    if (starting != NULL)
        added = adopt_socket(&starting->cycle->stream.listeners, address, fd) || added;
    return added;
}

void upgrade_sockets_take(struct upgrade *upgrade, int fd)
{
    struct address address;
    char text[ADDRESS_TEXT];

    if (!upgrade->ops->serves(upgrade->host) || address_of_socket(&address, fd) == -1 ||
        !adopt_listening_socket(upgrade->pool, &address, fd)) {
        descriptor_close(fd);
        return;
    }
    log_write(upgrade->log, LEVEL_NOTICE, 0,
        "a socket of %s comes from process %d: workers for the socket are started",
        address_format(&address, true, text), (int)upgrade->other);
    signals_raise(COMMAND_RELOAD);
}

void upgrade_sockets_give(struct upgrade *upgrade)
{
    const struct generation *serving = upgrade->pool->serving;
    const struct listener *listener;
    struct json empty;

    if (upgrade->link.fd == -1 || serving == NULL)
        return;
    STAILQ_FOREACH (listener, &serving->cycle->stream.listeners.list, link)
        for (unsigned i = 0; i < listener->fd_n && listener->options.reuseport; i++) {
            if (listener->fds[i] == -1 || upgrade_sockets_have(&upgrade->sockets, listener->fds[i]))
                continue;
            upgrade_link_begin(&empty);
            if (upgrade_link_send(&upgrade->link, &empty, listener->fds[i]) == -1)
                log_write(upgrade->log, LEVEL_ALERT, errno,
                    "a socket of %s could not be given to process %d", listener->text,
                    (int)upgrade->other);
        }
}

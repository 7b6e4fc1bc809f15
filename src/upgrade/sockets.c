/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the list of the other process's sockets, and adds received sockets to our listeners. A
 * received list is input: numbers that are no inodes match nothing. */
#include "upgrade/sockets.h"

#include "net/listener_open.h"
#include "net/listener_set.h"
#include "os/descriptor.h"

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

bool upgrade_sockets_adopt(struct listeners *listeners, const struct address *address, int fd)
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

void upgrade_sockets_give(const struct upgrade_sockets *sockets, const struct listeners *listeners,
    struct upgrade_link *link, pid_t other, struct log *log)
{
    const struct listener *listener;
    struct json empty;

    if (link->fd == -1 || listeners == NULL)
        return;
    STAILQ_FOREACH (listener, &listeners->list, link)
        for (unsigned i = 0; i < listener->fd_n && listener->options.reuseport; i++) {
            if (listener->fds[i] == -1 || upgrade_sockets_have(sockets, listener->fds[i]))
                continue;
            upgrade_link_begin(&empty);
            if (upgrade_link_send(link, &empty, listener->fds[i]) == -1)
                log_write(log, LEVEL_ALERT, errno,
                    "a socket of %s could not be given to process %d", listener->text, (int)other);
        }
}

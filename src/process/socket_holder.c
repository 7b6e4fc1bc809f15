/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps lists of sockets and the processes that hold them, sorted before the first look. */
#include "process/socket_holder.h"

#include "os/proc.h"

#include <assert.h>
#include <stdlib.h>

#define FIRST_ROOM 64u

/* The process whose sockets are added. */
struct addition {
    struct socket_holders *holders;
    pid_t pid;
};

static int add_socket(void *arg, unsigned long inode)
{
    const struct addition *addition = arg;
    struct socket_holders *holders = addition->holders;

    assert(holders->n <= holders->room);
    if (holders->n == holders->room) {
        size_t room = holders->room > 0 ? 2 * holders->room : FIRST_ROOM;
        struct socket_held *larger = realloc(holders->sockets, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        holders->sockets = larger;
        holders->room = room;
    }
    holders->sockets[holders->n++] = (struct socket_held) { inode, addition->pid };
    holders->sorted = false;
    return 0;
}

int socket_holders_add(struct socket_holders *holders, pid_t pid)
{
    struct addition addition = { holders, pid };

    return os_proc_visit_sockets(pid, add_socket, &addition);
}

static void add_process(void *arg, pid_t pid)
{
    socket_holders_add(arg, pid);
}

void socket_holders_add_all(struct socket_holders *holders)
{
    os_proc_visit(add_process, holders);
}

static int compare_sockets(const void *a, const void *b)
{
    const struct socket_held *one = a, *other = b;

    if (one->inode != other->inode)
        return one->inode < other->inode ? -1 : 1;
    return (one->pid > other->pid) - (one->pid < other->pid);
}

pid_t socket_holders_find(struct socket_holders *holders, unsigned long inode)
{
    size_t low = 0, high = holders->n;

    if (!holders->sorted && holders->n > 0)
        qsort(holders->sockets, holders->n, sizeof(holders->sockets[0]), compare_sockets);
    holders->sorted = true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (holders->sockets[middle].inode < inode)
            low = middle + 1;
        else
            high = middle;
    }
    return low < holders->n && holders->sockets[low].inode == inode ? holders->sockets[low].pid : 0;
}

void socket_holders_done(struct socket_holders *holders)
{
    free(holders->sockets);
    *holders = (struct socket_holders) { .sockets = NULL };
}

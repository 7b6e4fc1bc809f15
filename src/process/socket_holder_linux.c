/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the links of /proc/PID/fd, of which a socket's is "socket:[INODE]". A process that ends
 * meanwhile has none. */
#include "process/socket_holder.h"

#include "base/number.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_SIZE 32
#define FIRST_ROOM 64u

static int add_socket(struct socket_holders *holders, const struct socket_held *held)
{
    assert(holders->n <= holders->room);
    if (holders->n == holders->room) {
        size_t room = holders->room > 0 ? 2 * holders->room : FIRST_ROOM;
        struct socket_held *larger = realloc(holders->sockets, room * sizeof(*larger));

        if (larger == NULL)
            return -1;
        holders->sockets = larger;
        holders->room = room;
    }
    holders->sockets[holders->n++] = *held;
    holders->sorted = false;
    return 0;
}

/* Reads the inode of a link to a socket. */
static bool read_inode(int directory, const char *name, unsigned long *inode)
{
    char target[64];
    ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);

    if (n == -1)
        return false;
    target[n] = '\0';
    return sscanf(target, "socket:[%lu]", inode) == 1;
}

int socket_holders_add(struct socket_holders *holders, pid_t pid)
{
    struct socket_held held = { .pid = pid };
    const struct dirent *entry;
    char path[32];
    int status = 0;
    DIR *fds;

    assert(pid > 0);
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    if (fds == NULL)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    while (status == 0 && (entry = readdir(fds)) != NULL)
        if (read_inode(dirfd(fds), entry->d_name, &held.inode))
            status = add_socket(holders, &held);
    closedir(fds);
    return status;
}

void socket_holders_add_all(struct socket_holders *holders)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    int64_t pid;

    while (processes != NULL && (entry = readdir(processes)) != NULL)
        if (number_parse(entry->d_name, 1, INT_MAX, &pid) == NUMBER_OK)
            socket_holders_add(holders, (pid_t)pid);
    if (processes != NULL)
        closedir(processes);
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

void socket_holder_name(pid_t pid, char name[NAME_SIZE])
{
    char path[32];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    strcpy(name, "?");
    file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(name, NAME_SIZE, file) != NULL)
        name[strcspn(name, "\n")] = '\0';
    fclose(file);
}

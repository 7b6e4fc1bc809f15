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
#include <string.h>
#include <unistd.h>

static bool is_link_to(int directory, const char *name, const char *wanted)
{
    char target[64];
    ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);

    if (n == -1)
        return false;
    target[n] = '\0';
    return strcmp(target, wanted) == 0;
}

int socket_holder_is(pid_t pid, unsigned long inode)
{
    char path[32], wanted[40];
    const struct dirent *entry;
    int found = 0;
    DIR *fds;

    assert(pid > 0);
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    fds = opendir(path);
    if (fds == NULL)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    while (found == 0 && (entry = readdir(fds)) != NULL)
        found = is_link_to(dirfd(fds), entry->d_name, wanted);
    closedir(fds);
    return found;
}

static void read_name(struct socket_holder *holder)
{
    char path[32];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)holder->pid);
    strcpy(holder->name, "?");
    file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(holder->name, sizeof(holder->name), file) != NULL)
        holder->name[strcspn(holder->name, "\n")] = '\0';
    fclose(file);
}

bool socket_holder_find(unsigned long inode, struct socket_holder *holder)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    int64_t pid;

    while (processes != NULL && !found && (entry = readdir(processes)) != NULL) {
        if (number_parse(entry->d_name, 1, INT_MAX, &pid) != NUMBER_OK)
            continue;
        holder->pid = (pid_t)pid;
        found = socket_holder_is(holder->pid, inode) == 1;
    }
    if (processes != NULL)
        closedir(processes);
    if (found)
        read_name(holder);
    return found;
}

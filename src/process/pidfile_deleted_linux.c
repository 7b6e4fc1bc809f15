/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a lock whose file was deleted among the descriptors that /proc shows of its holder. */
#include "process/pidfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool pidfile_has_deleted_lock(const char *pid_path, pid_t pid)
{
    const char *base = strrchr(pid_path, '/');
    char path[PATH_MAX], deleted[2 * PATH_MAX], target[2 * PATH_MAX];
    struct dirent *entry;
    bool has = false;
    DIR *dir;

    base = base != NULL ? base + 1 : pid_path;
    snprintf(deleted, sizeof(deleted), "%.*s.", (int)(base - pid_path), pid_path);
    if (realpath(deleted, path) == NULL)
        return false;
    snprintf(deleted, sizeof(deleted), "%s/%s.lock (deleted)", path, base);
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    while (dir != NULL && !has && (entry = readdir(dir)) != NULL) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

        target[n > 0 ? n : 0] = '\0';
        has = strcmp(target, deleted) == 0;
    }
    if (dir != NULL)
        closedir(dir);
    return has;
}

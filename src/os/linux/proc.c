/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc: states, links of descriptors, names. */
#include "os/proc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 32
#define STAT_SIZE 512      /* of /proc/PID/stat */
#define LISTED_AT_ONCE 256 /* descriptors */

bool os_proc_read_line(const char *path, char *line, size_t n)
{
    FILE *file = fopen(path, "re");
    bool has_line = file != NULL && fgets(line, (int)n, file) != NULL;

    if (file != NULL)
        fclose(file);
    if (has_line)
        line[strcspn(line, "\n")] = '\0';
    return has_line;
}

/* Parses the name of an entry; -1 unless a number. */
static int parse_entry(const struct dirent *entry)
{
    char *end;
    long n = strtol(entry->d_name, &end, 10);

    return end != entry->d_name && *end == '\0' && n >= 0 && n <= INT_MAX ? (int)n : -1;
}

/* Reads /proc/PID/stat; returns what follows the second field, the name of the process, which may
 * hold any character; NULL with errno. */
static const char *read_stat(pid_t pid, char text[STAT_SIZE])
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    errno = ENOENT;
    return os_proc_read_line(path, text, STAT_SIZE) ? strrchr(text, ')') : NULL;
}

bool os_proc_read(pid_t pid, struct proc_stat *stat)
{
    char text[STAT_SIZE];
    const char *end = read_stat(pid, text);
    uint64_t started;
    int parent;

    if (end == NULL || sscanf(end,
                           ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %" SCNu64,
                           &stat->state, &parent, &started) != 3)
        return false;
    stat->parent = parent;
    stat->started = started;
    return true;
}

bool os_proc_is_stopped(pid_t child)
{
    struct proc_stat stat;

    return os_proc_read(child, &stat) && (stat.state == 'T' || stat.state == 't');
}

/* Returns the soft limit of open descriptors, or -1. Unlike prlimit(), /proc tells the limit of a
 * process of another user too. */
static int64_t read_descriptors_max(pid_t pid)
{
    char path[32], line[128];
    int64_t limit = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    file = fopen(path, "re");
    while (file != NULL && limit == -1 && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "Max open files %" SCNd64, &limit);
    if (file != NULL)
        fclose(file);
    return limit;
}

void os_proc_usage(pid_t pid, struct proc_usage *usage)
{
    char text[STAT_SIZE], path[32];
    const char *end = read_stat(pid, text);
    uint64_t user, system, pages;
    struct stat st;

    *usage = (struct proc_usage) { -1, -1, -1, read_descriptors_max(pid) };
    if (end != NULL && sscanf(end,
                           ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                           " %*d %*d %*d %*d %*d %*d %*u %*u %" SCNu64,
                           &user, &system, &pages) == 3) {
        usage->cpu_ms = (int64_t)((user + system) * 1000 / (uint64_t)sysconf(_SC_CLK_TCK));
        usage->memory = (int64_t)(pages * (uint64_t)sysconf(_SC_PAGESIZE));
    }
    /* the size of this folder is 0 where the kernel does not count */
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    if (stat(path, &st) == 0 && st.st_size > 0)
        usage->descriptors = st.st_size;
}

bool os_proc_runs(pid_t pid)
{
    struct proc_stat stat;

    if (pid <= 0 || (kill(pid, 0) == -1 && errno == ESRCH))
        return false;
    return !os_proc_read(pid, &stat) || (stat.state != 'Z' && stat.state != 'X');
}

void os_proc_name(pid_t pid, char name[NAME_SIZE])
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    if (!os_proc_read_line(path, name, NAME_SIZE))
        strcpy(name, "?");
}

void os_proc_visit(void (*visit)(void *arg, pid_t pid), void *arg)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        int pid = parse_entry(entry);

        if (pid > 0)
            visit(arg, (pid_t)pid);
    }
    if (processes != NULL)
        closedir(processes);
}

static DIR *open_descriptors_of(pid_t pid)
{
    char path[32];

    assert(pid > 0);
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    return opendir(path);
}

/* Reads a descriptor's link in /proc/PID/fd; false for a descriptor closed just now. */
static bool read_target(int folder, const char *name, char *target, size_t n)
{
    ssize_t length = readlinkat(folder, name, target, n - 1);

    target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

int os_proc_visit_sockets(pid_t pid, int (*visit)(void *arg, unsigned long inode), void *arg)
{
    DIR *fds = open_descriptors_of(pid);
    const struct dirent *entry;
    unsigned long inode;
    char target[64];
    int status = 0;

    if (fds == NULL)
        return errno == ENOENT || errno == ESRCH ? 0 : -1;
    while (status == 0 && (entry = readdir(fds)) != NULL)
        if (read_target(dirfd(fds), entry->d_name, target, sizeof(target)) &&
            sscanf(target, "socket:[%lu]", &inode) == 1)
            status = visit(arg, inode);
    closedir(fds);
    return status;
}

bool os_proc_has_deleted(pid_t pid, const char *path)
{
    DIR *fds = open_descriptors_of(pid);
    char target[2 * PATH_MAX];
    const struct dirent *entry;
    bool has = false;
    size_t n = strlen(path);

    while (fds != NULL && !has && (entry = readdir(fds)) != NULL)
        has = read_target(dirfd(fds), entry->d_name, target, sizeof(target)) &&
              strncmp(target, path, n) == 0 && strcmp(target + n, " (deleted)") == 0;
    if (fds != NULL)
        closedir(fds);
    return has;
}

void os_boot_id(char *text, size_t n)
{
    if (!os_proc_read_line("/proc/sys/kernel/random/boot_id", text, n))
        text[0] = '\0';
}

bool os_descriptors_list(int **fds, unsigned *n)
{
    DIR *folder = opendir("/proc/thread-self/fd");
    const struct dirent *entry;

    *fds = NULL;
    *n = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int fd = entry->d_name[0] != '.' ? atoi(entry->d_name) : dirfd(folder);

        if (fd == dirfd(folder))
            continue;
        if (*n % LISTED_AT_ONCE == 0) {
            int *larger = realloc(*fds, (*n + LISTED_AT_ONCE) * sizeof(*larger));

            if (larger == NULL) {
                closedir(folder);
                return false;
            }
            *fds = larger;
        }
        (*fds)[(*n)++] = fd;
    }
    if (folder != NULL)
        closedir(folder);
    return true;
}

void os_descriptors_close(unsigned first, unsigned last)
{
    close_range(first, last, 0);
}

bool os_descriptor_describe(int fd, char *what, size_t n)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
    return read_target(-1, path, what, n);
}

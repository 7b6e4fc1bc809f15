/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc of a process tree. CPU time is the scheduler's, in nanoseconds, and where this is
 * not accounted, that of /proc/PID/stat in ticks of the clock. Processes that have gone are left
 * out. */
#include "bench/tree.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_proc(pid_t pid, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

/* The parent and the CPU time of a line of stat, whose second word may contain anything. */
static int read_stat(pid_t pid, int *parent, uint64_t *ticks)
{
    char line[1024];
    unsigned long user = 0, system = 0;
    FILE *file = open_proc(pid, "stat");
    const char *rest = NULL;

    if (file == NULL)
        return -1;
    if (fgets(line, sizeof(line), file) != NULL)
        rest = strrchr(line, ')');
    fclose(file);
    if (rest == NULL || sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            parent, &user, &system) != 3)
        return -1;
    *ticks = user + system;
    return 0;
}

static uint64_t thread_cpu(pid_t pid, const char *thread)
{
    char name[64];
    unsigned long long ns = 0;
    FILE *file;

    snprintf(name, sizeof(name), "task/%.20s/schedstat", thread);
    file = open_proc(pid, name);
    if (file == NULL)
        return 0;
    if (fscanf(file, "%llu", &ns) != 1)
        ns = 0;
    fclose(file);
    return ns;
}

static uint64_t process_cpu(pid_t pid)
{
    char path[64];
    uint64_t ns = 0, ticks = 0;
    struct dirent *entry;
    int parent;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            ns += thread_cpu(pid, entry->d_name);
    closedir(dir);
    if (ns == 0 && read_stat(pid, &parent, &ticks) == 0)
        ns = ticks * 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
    return ns;
}

static int is_in(const struct tree *tree, int pid)
{
    for (unsigned i = 0; i < tree->n; i++)
        if (tree->pids[i] == pid)
            return 1;
    return 0;
}

/* Adds the children of all known processes; a process has a higher number than its parent, except
 * after an overflow of numbers, and then the next pass finds the child. */
static int add_children(struct tree *tree)
{
    unsigned before = tree->n;
    struct dirent *entry;
    DIR *dir = opendir("/proc");

    if (dir == NULL)
        err(1, "/proc");
    while ((entry = readdir(dir)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        uint64_t ticks;
        int parent;

        if (pid <= 0 || is_in(tree, pid) || read_stat(pid, &parent, &ticks) == -1)
            continue;
        if (is_in(tree, parent) && tree->n < TREE_MAX)
            tree->pids[tree->n++] = pid;
    }
    closedir(dir);
    return tree->n != before;
}

void tree_read_cpu(struct tree *tree, pid_t root)
{
    uint64_t ticks;
    int parent;

    *tree = (struct tree) { .n = 1, .pids = { root } };
    if (read_stat(root, &parent, &ticks) == -1)
        errx(1, "the server (process %d) has gone", (int)root);
    while (add_children(tree))
        continue;
    for (unsigned i = 0; i < tree->n; i++) {
        tree->cpu[i] = process_cpu(tree->pids[i]);
        tree->cpu_ns += tree->cpu[i];
    }
}

uint64_t tree_cpu_of(const struct tree *tree, const char *title)
{
    uint64_t ns = 0;

    for (unsigned i = 0; i < tree->n; i++) {
        char line[256] = "";
        FILE *file = open_proc(tree->pids[i], "cmdline");

        if (file == NULL)
            continue;
        if (fgets(line, sizeof(line), file) != NULL && strstr(line, title) != NULL)
            ns += tree->cpu[i];
        fclose(file);
    }
    return ns;
}

static uint64_t process_pss(pid_t pid)
{
    FILE *file = open_proc(pid, "smaps_rollup");
    unsigned long long kib = 0;
    char line[256];

    if (file == NULL && errno == EACCES)
        errx(1, "the memory of process %d is for root to read", (int)pid);
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Pss: %llu", &kib) == 1)
            break;
    fclose(file);
    return kib * 1024;
}

static unsigned process_descriptors(pid_t pid)
{
    char path[64];
    unsigned n = 0;
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

void tree_read(struct tree *tree, pid_t root)
{
    tree_read_cpu(tree, root);
    for (unsigned i = 0; i < tree->n; i++) {
        tree->descriptors[i] = process_descriptors(tree->pids[i]);
        tree->pss += process_pss(tree->pids[i]);
    }
}

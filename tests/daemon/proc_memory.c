/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of another process, by /proc/PID/maps and /proc/PID/mem. */
#include "daemon/proc_memory.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *open_maps(pid_t pid)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    return fopen(path, "re");
}

int proc_memory_maps(pid_t pid, const char *name)
{
    FILE *maps = open_maps(pid);
    char *line = NULL;
    size_t size = 0;
    int found = -1;

    while (maps != NULL && getline(&line, &size, maps) != -1)
        found = strstr(line, name) != NULL || found == 1;
    free(line);
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* Whether the bytes are in this part of the memory. */
static bool is_within(int memory, unsigned long from, unsigned long to, const void *bytes, size_t n)
{
    static char room[1 << 16];

    for (; from < to; from += sizeof(room) - n) {
        ssize_t got = pread(memory, room, sizeof(room), (off_t)from);

        if (got <= 0)
            return false;
        if (memmem(room, (size_t)got, bytes, n) != NULL)
            return true;
    }
    return false;
}

int proc_memory_has(pid_t pid, const void *bytes, size_t n)
{
    FILE *maps = open_maps(pid);
    char path[64], *line = NULL;
    size_t size = 0;
    int found = -1, memory;

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    while (memory != -1 && maps != NULL && getline(&line, &size, maps) != -1) {
        unsigned long from, to;

        found =
            found == 1 || (sscanf(line, "%lx-%lx r", &from, &to) == 2 &&
                              strstr(line, "[v") == NULL && is_within(memory, from, to, bytes, n));
    }
    free(line);
    if (maps != NULL)
        fclose(maps);
    if (memory != -1)
        close(memory);
    return found;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the machine's memory from /proc/meminfo and compares it with the control group's limit. */
#include "os/ram.h"

#include "os/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads "MemTotal:       24683280 kB". Some containers are shown a value of their own. */
static int64_t machine_memory(const char *root)
{
    static const char label[] = "MemTotal:";
    char path[PATH_MAX], line[128];
    long long kilobytes = 0;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/proc/meminfo", root) >= (int)sizeof(path) ||
        (file = fopen(path, "re")) == NULL)
        return 0;
    while (kilobytes == 0 && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, label, strlen(label)) == 0)
            kilobytes = strtoll(line + strlen(label), NULL, 10);
    fclose(file);
    return kilobytes > 0 && kilobytes < INT64_MAX / 1024 ? kilobytes * 1024 : 0;
}

int64_t ram_allowed_below(const char *root)
{
    int64_t machine = machine_memory(root), limit = cgroup_memory_limit(root);

    return limit != 0 && (machine == 0 || limit < machine) ? limit : machine;
}

int64_t ram_allowed(void)
{
    return ram_allowed_below("");
}

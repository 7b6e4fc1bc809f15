/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the machine, of the affinity mask, and of control groups. Reads /proc/self/cgroup,
 * finds the mount point of the groups in the mount table, and takes the lowest limit of our group
 * and of all groups above it. A file that cannot be read counts as no limit. */
#include "os/limits.h"

#include "os/proc.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSORS_MAX (1 << 20) /* more than any kernel's mask has */

/* Hierarchies with limits: v1 has a hierarchy a controller. */
enum hierarchy { V1, V2, HIERARCHIES };

struct controller {
    const char *name;
    int64_t (*limit[HIERARCHIES])(const char *directory); /* reads a group's limit; 0: none */
};

struct group {
    const char *root; /* top of the file system to read */
    const struct controller *controller;
    char path[HIERARCHIES][PATH_MAX]; /* path of our group; empty: none */
    int64_t least;                    /* limit that was found; 0: none */
};

static void lower_limit(int64_t *least, int64_t limit)
{
    if (limit != 0 && (*least == 0 || limit < *least))
        *least = limit;
}

static bool has_word(const char *list, const char *word)
{
    char padded[PATH_MAX + 3], sought[32];

    snprintf(padded, sizeof(padded), ",%s,", list);
    snprintf(sought, sizeof(sought), ",%s,", word);
    return strstr(padded, sought) != NULL;
}

static bool read_line(const char *directory, const char *name, char *line, size_t size)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
           os_proc_read_line(path, line, size);
}

/* Parses a positive number, terminated by `end`; returns 0 for anything else. */
static int64_t parse_positive(const char *text, char end)
{
    char *rest;
    long long value = strtoll(text, &rest, 10);

    return rest != text && *rest == end && value > 0 ? value : 0;
}

static int64_t rounded_up(int64_t quota, int64_t period)
{
    if (quota <= 0 || period <= 0)
        return 0;
    return quota / period + (quota % period != 0);
}

/* cpu.max: "max 100000" or "150000 100000" */
static int64_t cpu_v2(const char *directory)
{
    char line[128];
    const char *space;

    if (!read_line(directory, "cpu.max", line, sizeof(line)))
        return 0;
    space = strchr(line, ' ');
    if (space == NULL)
        return 0;
    return rounded_up(parse_positive(line, ' '), parse_positive(space + 1, '\0'));
}

/* cpu.cfs_quota_us is -1 without a limit */
static int64_t cpu_v1(const char *directory)
{
    char quota[128], period[128];

    if (!read_line(directory, "cpu.cfs_quota_us", quota, sizeof(quota)) ||
        !read_line(directory, "cpu.cfs_period_us", period, sizeof(period)))
        return 0;
    return rounded_up(parse_positive(quota, '\0'), parse_positive(period, '\0'));
}

static const struct controller cpu = { "cpu", { [V1] = cpu_v1, [V2] = cpu_v2 } };

/* Reads a file with a number of bytes; "max", or in v1 a number of 2^60 or more, means no limit. */
static int64_t read_byte_limit(const char *directory, const char *name)
{
    char line[128];
    int64_t n = read_line(directory, name, line, sizeof(line)) ? parse_positive(line, '\0') : 0;

    return n < INT64_C(1) << 60 ? n : 0;
}

/* Above memory.high a group is slowed down, above memory.max killed. */
static int64_t memory_v2(const char *directory)
{
    int64_t least = read_byte_limit(directory, "memory.max");

    lower_limit(&least, read_byte_limit(directory, "memory.high"));
    return least;
}

static int64_t memory_v1(const char *directory)
{
    return read_byte_limit(directory, "memory.limit_in_bytes");
}

static const struct controller memory = { "memory", { [V1] = memory_v1, [V2] = memory_v2 } };

/* Returns the lowest limit of the group `below` the mount point and the groups above. */
static int64_t limit_upwards(
    const struct group *group, enum hierarchy hierarchy, const char *point, const char *below)
{
    char directory[PATH_MAX];
    int64_t least = 0;
    size_t base;
    int n = snprintf(directory, sizeof(directory), "%s%s%s", group->root, point, below);

    if (n < 0 || n >= (int)sizeof(directory))
        return 0;
    base = strlen(group->root) + strlen(point);
    assert(base <= strlen(directory));
    for (;;) {
        char *slash;

        lower_limit(&least, group->controller->limit[hierarchy](directory));
        slash = strrchr(directory, '/');
        if (slash == NULL || (size_t)(slash - directory) < base)
            return least;
        *slash = '\0';
    }
}

/* Skips and counts ".." at the start of *path: groups above the root of a cgroup namespace. */
static unsigned levels_up(const char **path)
{
    unsigned n = 0;

    for (; strncmp(*path, "/..", 3) == 0 && ((*path)[3] == '/' || (*path)[3] == '\0'); n++)
        *path += 3;
    if (strcmp(*path, "/") == 0)
        ++*path;
    return n;
}

/* Returns our group's path below the mounted group; NULL: the mount shows no group of ours. */
static const char *below_mount(const char *group, const char *top)
{
    unsigned group_up = levels_up(&group), top_up = levels_up(&top);
    size_t n = strlen(top);

    if (top_up > group_up && n == 0) /* a group above ours, but its path from here is unknown */
        return "";
    if (top_up != group_up || strncmp(group, top, n) != 0)
        return NULL;
    return group[n] == '/' || group[n] == '\0' ? group + n : NULL;
}

/* Parses a line of /proc/self/cgroup: "0::/path" or "4:cpu,cpuacct:/path". */
static void read_group_line(struct group *group, char *line)
{
    char *controllers = strchr(line, ':'), *path;
    enum hierarchy hierarchy;
    size_t length;

    if (controllers == NULL || (path = strchr(++controllers, ':')) == NULL)
        return;
    *path++ = '\0';
    if (*controllers == '\0' && strncmp(line, "0:", 2) == 0)
        hierarchy = V2;
    else if (has_word(controllers, group->controller->name))
        hierarchy = V1;
    else
        return;
    length = strlen(path);
    if (*path == '/' && length < sizeof(group->path[hierarchy]))
        memcpy(group->path[hierarchy], path, length + 1);
}

/* Decodes the kernel's octal escapes for blanks: "\040". */
static void unescape_octal(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        unsigned byte;

        if (*from == '\\' && strspn(from + 1, "01234567") >= 3 && from[1] <= '3') {
            byte = (unsigned)(from[1] - '0') << 6 | (unsigned)(from[2] - '0') << 3 |
                   (unsigned)(from[3] - '0');
            *to++ = (char)byte;
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

/* Parses a line of /proc/self/mountinfo, "ID PARENT MAJOR:MINOR TOP POINT OPTIONS [TAG]... - TYPE
 * SOURCE OPTIONS", and lowers the limit if a cgroup mount may have the controller. */
static void read_mount_line(struct group *group, char *line)
{
    char top[PATH_MAX], point[PATH_MAX], type[16], options[PATH_MAX];
    const char *tail = strstr(line, " - "), *path, *below;
    enum hierarchy hierarchy;

    if (tail == NULL || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2 ||
        sscanf(tail, " - %15s %*s %4095s", type, options) != 2)
        return;
    if (strcmp(type, "cgroup2") == 0)
        hierarchy = V2;
    else if (strcmp(type, "cgroup") == 0 && has_word(options, group->controller->name))
        hierarchy = V1;
    else
        return;
    unescape_octal(top);
    unescape_octal(point);
    path = group->path[hierarchy];
    below = *path != '\0' ? below_mount(path, top) : NULL;
    if (below != NULL)
        lower_limit(&group->least, limit_upwards(group, hierarchy, point, below));
}

/* Reads the lines of a file that have the mark of v2 or name the controller. */
static void read_lines(struct group *group, const char *name, const char *mark,
    void (*read_one)(struct group *group, char *line))
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    FILE *file;

    if (snprintf(path, sizeof(path), "%s/proc/self/%s", group->root, name) >= (int)sizeof(path) ||
        (file = fopen(path, "re")) == NULL)
        return;
    while (getline(&line, &size, file) != -1) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, mark) != NULL || strstr(line, group->controller->name) != NULL)
            read_one(group, line);
    }
    free(line);
    fclose(file);
}

static int64_t least_limit(const char *root, const struct controller *controller)
{
    struct group group = { .root = root, .controller = controller };

    assert(root != NULL);
    read_lines(&group, "cgroup", "0::", read_group_line);
    read_lines(&group, "mountinfo", " - cgroup2 ", read_mount_line);
    assert(group.least >= 0);
    return group.least;
}

unsigned os_cgroup_cpu_quota(const char *root)
{
    int64_t quota = least_limit(root, &cpu);

    return quota < UINT_MAX ? (unsigned)quota : UINT_MAX;
}

int64_t os_cgroup_memory_limit(const char *root)
{
    return least_limit(root, &memory);
}

/* Counts the processors of the affinity mask, or else of the machine. */
static unsigned count_affinity(void)
{
    long online;

    for (size_t n = CPU_SETSIZE; n <= PROCESSORS_MAX; n *= 2) {
        size_t size = CPU_ALLOC_SIZE(n);
        cpu_set_t *set = CPU_ALLOC(n);
        int failed, count;

        if (set == NULL)
            break;
        CPU_ZERO_S(size, set);
        failed = sched_getaffinity(0, size, set) == -1 ? errno : 0;
        count = CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (failed == 0 && count > 0)
            return (unsigned)count;
        if (failed != EINVAL) /* EINVAL: the kernel's mask is larger */
            break;
    }
    online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned os_cpu_allowed(const char *root)
{
    unsigned count = count_affinity(), quota = os_cgroup_cpu_quota(root);

    assert(count > 0);
    return quota != 0 && quota < count ? quota : count;
}

/* Reads "MemTotal: 24683280 kB". Some containers see a private value. */
static int64_t read_machine_memory(const char *root)
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

int64_t os_ram_allowed(const char *root)
{
    int64_t machine = read_machine_memory(root), limit = os_cgroup_memory_limit(root);

    return limit != 0 && (machine == 0 || limit < machine) ? limit : machine;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A module with its worker in an attacker's hands, for writes into the input of the master and the
 * other workers. A client's letter chooses: list the daemon's shared memory (l), make the memory
 * writable (m), open descriptors of the memory for writing (d), write random bytes wherever
 * possible (r), and write into another worker's page (o). Declares metrics and a map. When loaded
 * in the process of a configuration check, looks for shared memory. */
#include <forkbeard/forkbeard.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OURS "/memfd:forkbeard:"
#define REPLY 4096

struct range {
    uintptr_t from, to;
    bool readable, writable;
    char name[64];
};

/* Reads the next mapping of the daemon's shared memory. */
static bool next_range(FILE *maps, struct range *range)
{
    char line[512], mode[8];
    unsigned long from, to;

    while (fgets(line, sizeof(line), maps) != NULL) {
        const char *name = strstr(line, OURS);

        if (name == NULL || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3)
            continue;
        *range = (struct range) { from, to, mode[0] == 'r', mode[1] == 'w', "" };
        sscanf(name + strlen(OURS), "%63s", range->name);
        return true;
    }
    return false;
}

static void add_text(char *reply, const char *name, unsigned long n)
{
    size_t used = strlen(reply);

    snprintf(reply + used, REPLY - used, "%s=%lu ", name, n);
}

/* Lists the writable pages of each piece. */
static void list_writable(FILE *maps, char *reply)
{
    struct range range;

    while (next_range(maps, &range))
        if (range.writable)
            add_text(reply, range.name, (range.to - range.from) / (unsigned long)getpagesize());
}

static void make_writable(FILE *maps, char *reply)
{
    unsigned long tried = 0, made = 0;
    struct range range;

    while (next_range(maps, &range)) {
        if (range.writable)
            continue;
        tried++;
        made += mprotect((void *)range.from, range.to - range.from, PROT_READ | PROT_WRITE) == 0;
    }
    add_text(reply, "tried", tried);
    add_text(reply, "made", made);
}

/* Tries every descriptor of memory; a module's own copy is one. */
static void open_descriptors(char *reply)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned long ours = 0, memory = 0, written = 0;
    struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[300], target[300] = "";
        int fd;

        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof(target) - 1) == -1 || strncmp(target, "/memfd:", 7) != 0)
            continue;
        memory++;
        ours += strncmp(target, OURS, strlen(OURS)) == 0;
        fd = open(path, O_RDWR);
        written += fd != -1 && (pwrite(fd, "", 1, 0) == 1 || ftruncate(fd, 0) == 0);
        if (fd != -1)
            close(fd);
    }
    if (directory != NULL)
        closedir(directory);
    add_text(reply, "memory", memory);
    add_text(reply, "ours", ours);
    add_text(reply, "written", written);
}

static void fill_range(const struct range *range)
{
    static uint64_t x = 1;

    for (uintptr_t at = range->from; at < range->to; at += sizeof(x)) {
        x = x * 6364136223846793005u + 1442695040888963407u + (uint64_t)getpid();
        *(volatile uint64_t *)at = x ^ x >> 29; /* NOLINT */
    }
}

static void fill_writable(FILE *maps, char *reply)
{
    struct range range;

    while (next_range(maps, &range))
        if (range.writable)
            fill_range(&range);
    add_text(reply, "filled", 1);
}

/* The page behind our own is the next worker's, the page before is the master's published page, the
 * shared page, or a worker's. */
static void write_elsewhere(FILE *maps)
{
    struct range range;

    while (next_range(maps, &range))
        if (!range.writable && range.readable && strcmp(range.name, "shared") == 0)
            *(volatile char *)range.from = 1; /* NOLINT */
}

static size_t intruder_data(fb_conn *conn, void *state, fb_bytes in)
{
    static char reply[REPLY];
    FILE *maps = fopen("/proc/self/maps", "r");

    (void)state;
    reply[0] = '\0';
    for (size_t i = 0; i < in.n && maps != NULL; i++) {
        rewind(maps);
        if (in.p[i] == 'l')
            list_writable(maps, reply);
        else if (in.p[i] == 'm')
            make_writable(maps, reply);
        else if (in.p[i] == 'd')
            open_descriptors(reply);
        else if (in.p[i] == 'r')
            fill_writable(maps, reply);
        else if (in.p[i] == 'o')
            write_elsewhere(maps);
        else
            add_text(reply, "alive", 1);
    }
    if (maps != NULL)
        fclose(maps);
    strcat(reply, "\n");
    fb_write(conn, reply, strlen(reply));
    return in.n;
}

/* Ends the checking process of a configuration if it has the shared memory. */
__attribute__((constructor)) static void look_around(void)
{
    FILE *title = fopen("/proc/self/cmdline", "r"), *maps = fopen("/proc/self/maps", "r");
    char text[128] = "";
    struct range range;

    if (title != NULL && maps != NULL && fgets(text, sizeof(text), title) != NULL &&
        strstr(text, "configuration check") != NULL && next_range(maps, &range))
        _exit(99);
    if (title != NULL)
        fclose(title);
    if (maps != NULL)
        fclose(maps);
}

static int declare_map(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options map = {
        .size = sizeof(map),
        .name = "loot",
        .version = 1,
        .capacity = 100,
        .key_max = 16,
        .value_max = 16,
    };

    (void)own;
    (void)parent;
    return fb_conf_map(conf, &map) != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "intruder", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

static const fb_metric metrics[] = {
    { .name = "taken", .kind = FB_COUNTER },
    { .name = "held", .kind = FB_GAUGE },
};

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = intruder_data,
};

FB_PROTOCOL(intruder) = {
    FB_PROTOCOL_HEADER,
    .name = "intruder",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conf_done = declare_map,
    .ops = &ops,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds memory shared with other processes, by all ways, and writes into the memory at random. */
#include "module/attack_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAPPED_MOST ((size_t)4 << 20)
#define LONGER 65536

static void add_mapping(struct attack *attack, void *p, size_t n)
{
    if (p != MAP_FAILED && attack->mapping_n < ATTACK_MAPPINGS_MAX)
        attack->mappings[attack->mapping_n++] = (struct attack_mapping) { p, n };
}

/* A line of /proc/self/maps. */
struct line {
    char *p;
    size_t n, offset; /* in the file */
    bool writable;
};

/* Whether the line is of shared memory. */
static bool parse_line(const char *text, struct line *line)
{
    unsigned long begin, end, offset;
    char rights[5];

    if (sscanf(text, "%lx-%lx %4s %lx", &begin, &end, rights, &offset) != 4 || rights[3] != 's')
        return false;
    *line = (struct line) { (char *)begin, end - begin, offset, rights[1] == 'w' };
    return true;
}

static bool make_writable(const struct line *line)
{
    return mprotect(line->p, line->n, PROT_READ | PROT_WRITE) == 0;
}

/* Maps the memory of the line again, and more than before. */
static void *map_longer(const struct line *line)
{
    return mremap(line->p, 0, line->n + LONGER, MREMAP_MAYMOVE);
}

/* Makes a mapping show further pages of the file; 0: the same pages, as a trial of the call. */
static bool move_pages(const struct line *line, size_t pages)
{
    return syscall(SYS_remap_file_pages, line->p, line->n, 0, line->offset / 4096 + pages, 0) == 0;
}

/* Shared memory as mapped, with more rights, and beyond the mapping's size. */
static void note_mapping(struct attack *attack, const char *text)
{
    struct line line;

    if (!parse_line(text, &line))
        return;
    if (line.writable || make_writable(&line))
        add_mapping(attack, line.p, line.n);
    add_mapping(attack, map_longer(&line), line.n + LONGER);
    if (attack_draw_below(attack, 8) == 0)
        move_pages(&line, attack_draw_below(attack, 8));
}

static void count_mapping(struct attack *attack, const char *text)
{
    struct line line;
    void *longer;

    if (!parse_line(text, &line))
        return;
    if (!line.writable && make_writable(&line)) {
        attack->reach.writable++;
        mprotect(line.p, line.n, PROT_READ);
    }
    attack->reach.longer += move_pages(&line, 0);
    longer = map_longer(&line);
    if (longer == MAP_FAILED)
        return;
    attack->reach.longer++;
    munmap(longer, line.n + LONGER);
}

static void read_mappings(
    struct attack *attack, void (*each)(struct attack *attack, const char *line))
{
    static char text[131072];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t piece;
    char *rest = text, *line;

    if (fd == -1)
        return;
    while ((piece = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)piece;
    close(fd);
    text[n] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL)
        each(attack, line);
}

void attack_find_mappings(struct attack *attack)
{
    read_mappings(attack, note_mapping);
}

bool attack_is_memory(int fd)
{
    char path[64], target[64];
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return strncmp(target, "/memfd:", 7) == 0 || fcntl(fd, F_GET_SEALS) != -1;
}

void attack_map_descriptor(struct attack *attack, int fd)
{
    char path[64];
    struct stat st;
    size_t n;
    int again;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, O_RDWR | O_CLOEXEC);
    attack_add_descriptor(attack, again);
    if (fstat(fd, &st) == -1 || st.st_size == 0)
        return;
    n = (size_t)st.st_size < MAPPED_MOST ? (size_t)st.st_size : MAPPED_MOST;
    add_mapping(
        attack, mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, again != -1 ? again : fd, 0), n);
}

/* A number possible in a field, or impossible there. */
static uint64_t draw_value(struct attack *attack, uint64_t now)
{
    const uint64_t values[] = { 0, 1, UINT64_MAX, now + 1, now - 1, now << 1, INT64_MAX,
        (uint64_t)1 << 63, UINT32_MAX, attack_draw_below(attack, 16),
        attack_draw_below(attack, 100000), (uint64_t)getpid(), (uint64_t)getppid(),
        attack_draw(attack), attack_draw(attack) >> 32,
        now ^ (uint64_t)1 << attack_draw_below(attack, 64) };

    return values[attack_draw_below(attack, sizeof(values) / sizeof(values[0]))];
}

static char *draw_place(struct attack *attack, size_t room)
{
    static const size_t reaches[] = { 256, 4096, 8192, 65536, SIZE_MAX, SIZE_MAX };
    const struct attack_mapping *mapping =
        &attack->mappings[attack_draw_below(attack, attack->mapping_n)];
    size_t reach = reaches[attack_draw_below(attack, sizeof(reaches) / sizeof(reaches[0]))];

    if (reach > mapping->n)
        reach = mapping->n;
    if (reach <= room)
        return mapping->p;
    return mapping->p +
           (attack_draw(attack) % (reach - room) & ~(uint64_t)(attack_draw(attack) % 8 ? 7 : 0));
}

void attack_write_memory(struct attack *attack)
{
    unsigned char bytes[ATTACK_RUN_MOST];
    size_t n = 1 + attack_draw_below(attack, sizeof(bytes));
    char *place = draw_place(attack, sizeof(bytes));
    uint64_t value, now = 0;

    memcpy(&now, place, sizeof(now));
    value = draw_value(attack, now);
    switch (attack_draw_below(attack, 16)) {
    case 0:
        attack_draw_bytes(attack, bytes, n);
        memcpy(place, bytes, n);
        break;
    case 1:
        memmove(place, draw_place(attack, sizeof(bytes)), n);
        break;
    case 2:
        memset(place, (int)value, n);
        break;
    case 3:
        *place = (char)value;
        break;
    case 4:
        if (attack_draw_below(attack, 8) == 0) /* a whole page */
            memset(
                attack->mappings[attack_draw_below(attack, attack->mapping_n)].p, (int)value, 4096);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        memcpy(place, &value, 4);
        break;
    default:
        memcpy(place, &value, sizeof(value));
        break;
    }
}

/* Modules' own memory is sealed, and stays open for debuggers. */
static bool may_be_written(int fd)
{
    return fcntl(fd, F_GETFD) != -1 && attack_is_memory(fd) &&
           (fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) == 0;
}

struct attack_reach attack_reach(void)
{
    struct attack attack = { .own = -1 };

    for (int fd = 0; fd < ATTACK_DESCRIPTOR_END; fd++)
        attack.reach.descriptors += may_be_written(fd);
    read_mappings(&attack, count_mapping);
    return attack.reach;
}

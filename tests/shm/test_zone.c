/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones: declared, opened, handed to the next configuration, adopted by another process, and
 * refused. */
#include "base/compiler.h"
#include "shm/declared_map.h"
#include "shm/map.h"
#include "shm/memory.h"
#include "shm/metrics.h"
#include "shm/zone.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct shm_map_shape tiny_shape = { 1, 1, 1, 0 };
static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE };
static const struct shm_metrics_shape metrics_shape = { countof(kinds), kinds };

static const struct zone_header *header_of(const struct zone *zone)
{
    return zone->segment.base;
}

static unsigned lines_in(const char *text)
{
    unsigned n = 0;

    for (; *text != 0; text++)
        n += *text == '\n';
    return n;
}

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n;
}

/* Address and size of a zone's memory in the test's process. */
static unsigned mappings_of(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], wanted[128];
    unsigned n = 0;

    ck_assert_ptr_nonnull(maps);
    snprintf(wanted, sizeof(wanted), "/memfd:forkbeard:%s ", name);
    while (fgets(line, sizeof(line), maps) != NULL)
        n += strstr(line, wanted) != NULL;
    fclose(maps);
    return n;
}

START_TEST(a_declaration_makes_nothing_outside_of_memory)
{
    struct declared declared;
    struct zone *zone;
    unsigned before;

    declared_start(&declared);
    before = open_descriptors();
    zone = declare_map(&declared, "sessions", 1);
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert_uint_eq(mappings_of("sessions"), 0);
    ck_assert_ptr_null(zone_memory(zone));
    ck_assert_ptr_eq(zones_find(&declared.zones, "sessions"), zone);
    ck_assert_ptr_null(zones_find(&declared.zones, "session"));
    /* zones not open are passed over */
    zones_slot_acquired(&declared.zones, (struct slot_id) { 1, 1 });
    zones_slot_released(&declared.zones, (struct slot_id) { 1, 1 });
    declared_stop(&declared);
}
END_TEST

#define NAME_63 "123456789_123456789_123456789_123456789_123456789_123456789_123"

static const struct {
    const char *name;
    const struct zone_kind *kind;
    const void *shape;
    int error; /* 0: it is taken */
} declarations[] = {
    { "", &shm_map_kind, &map_shape, EINVAL },
    { NAME_63, &shm_map_kind, &map_shape, 0 },
    { NAME_63 "4", &shm_map_kind, &map_shape, ENAMETOOLONG },
    { "taken", &shm_map_kind, &map_shape, EEXIST },
    { "taken", &shm_metrics_kind, &metrics_shape, EEXIST },
    { "m", &shm_metrics_kind, &metrics_shape, 0 },
    { "m", &shm_metrics_kind, &(struct shm_metrics_shape) { 0, kinds }, EOVERFLOW },
    { "m", &shm_map_kind, &(struct shm_map_shape) { 0, 1, 1, 0 }, EOVERFLOW },
    { "m", &shm_map_kind, &(struct shm_map_shape) { 200000000, 32, 1 << 20, 0 }, EFBIG },
};

START_TEST(some_declarations_are_refused)
{
    struct zone *zone;
    struct declared declared;

    declared_start(&declared);
    declare_map(&declared, "taken", 1);
    zone = zone_declare(&declared.zones, declared.arena, declarations[_i].kind,
        declarations[_i].name, 1, declarations[_i].shape);
    if (declarations[_i].error != 0) {
        ck_assert_ptr_null(zone);
        ck_assert_int_eq(errno, declarations[_i].error);
    } else {
        ck_assert_ptr_nonnull(zone);
        open_all(&declared, NULL);
        ck_assert_str_eq(header_of(zone)->name, declarations[_i].name);
        ck_assert_uint_eq(mappings_of(declarations[_i].name), 1);
    }
    declared_stop(&declared);
}
END_TEST

START_TEST(an_open_zone_is_shared_with_children)
{
    struct declared declared;
    struct zone *map, *metrics;
    pid_t pid;
    int64_t totals[2];

    declared_start(&declared);
    map = declare_map(&declared, "sessions", 7);
    metrics = zone_declare(
        &declared.zones, declared.arena, &shm_metrics_kind, "numbers", 1, &metrics_shape);
    open_all(&declared, NULL);
    ck_assert_uint_eq((uintptr_t)zone_memory(map) % CACHE_LINE, 0);
    ck_assert_uint_eq(header_of(map)->magic, ZONE_MAGIC);
    ck_assert_uint_eq(header_of(map)->version, 7);
    ck_assert_uint_eq(header_of(map)->size, map->size);
    ck_assert_int_ne(fcntl(map->segment.fd, F_GETFD) & FD_CLOEXEC, 0);
    zones_slot_acquired(&declared.zones, (struct slot_id) { 3, 1 });
    pid = fork_child();
    if (pid == 0) {
        if (zones_enter(&declared.zones, (struct slot_id) { 3, 1 }, &declared.log.log) == -1)
            _exit(1);
        put_key(map, "a");
        shm_metric_add(&shm_metrics_row(zone_memory(metrics), &metrics_shape, 3)[0], 5);
        shm_metric_add(&shm_metrics_row(zone_memory(metrics), &metrics_shape, 3)[1], 6);
        _exit(0);
    }
    wait_for_child(pid);
    ck_assert(has(map, "a"));
    zones_slot_released(&declared.zones, (struct slot_id) { 3, 1 });
    for (uint32_t i = 0; i < metrics_shape.n; i++)
        totals[i] = shm_metrics_total(zone_memory(metrics), &metrics_shape, i);
    ck_assert_int_eq(totals[0], 5);
    ck_assert_int_eq(totals[1], 0);
    ck_assert_str_eq(memory_log_take(&declared.log), "");
    declared_stop(&declared);
}
END_TEST

START_TEST(memory_is_touched_as_it_is_used)
{
    static const struct shm_map_shape shape = { 1 << 20, 1000, 1 << 20, 0 };
    struct declared declared;
    struct zone *zone;
    struct stat file;

    declared_start(&declared);
    zone = zone_declare(&declared.zones, declared.arena, &shm_map_kind, "large", 1, &shape);
    open_all(&declared, NULL);
    put_key(zone, "a");
    ck_assert_int_eq(fstat(zone->segment.fd, &file), 0);
    ck_assert_uint_eq((uint64_t)file.st_size, zone->size);
    ck_assert_uint_gt(zone->size, UINT64_C(1) << 40);
    /* the buckets of a shard are 64 kB */
    ck_assert_uint_le((uint64_t)file.st_blocks * 512, 128 * 1024);
    declared_stop(&declared);
}
END_TEST

/* The new configuration opens before the old goes. _i: the old goes, or the new. */
START_TEST(a_zone_of_the_same_layout_is_taken_over)
{
    bool aborted = _i == 1;
    struct declared old, new;
    struct zone *a, *b;
    unsigned before = open_descriptors();

    declared_start(&old);
    declared_start(&new);
    a = declare_map(&old, "sessions", 1);
    open_all(&old, NULL);
    put_key(a, "from the old");
    b = declare_map(&new, "sessions", 1);
    open_all(&new, &old);
    ck_assert_int_ne(a->segment.fd, b->segment.fd);
    ck_assert_ptr_ne(a->segment.base, b->segment.base);
    ck_assert_uint_eq(mappings_of("sessions"), 2);
    ck_assert(has(b, "from the old"));
    put_key(b, "from the new");
    ck_assert(has(a, "from the new"));
    ck_assert_str_eq(memory_log_take(&new.log), "");

    declared_stop(aborted ? &new : &old);
    ck_assert_uint_eq(mappings_of("sessions"), 1);
    put_key(aborted ? a : b, "later");
    ck_assert(has(aborted ? a : b, "from the old"));
    ck_assert(has(aborted ? a : b, "from the new"));
    declared_stop(aborted ? &old : &new);
    ck_assert_uint_eq(mappings_of("sessions"), 0);
    ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(what_the_dead_have_counted_is_folded_once)
{
    struct declared old, new;
    struct zone *a, *b;
    int64_t totals[2];

    declared_start(&old);
    declared_start(&new);
    a = zone_declare(&old.zones, old.arena, &shm_metrics_kind, "n", 1, &metrics_shape);
    open_all(&old, NULL);
    b = zone_declare(&new.zones, new.arena, &shm_metrics_kind, "n", 1, &metrics_shape);
    open_all(&new, &old);
    zones_slot_acquired(&old.zones, (struct slot_id) { 0, 1 });
    shm_metric_add(&shm_metrics_row(zone_memory(a), &metrics_shape, 0)[0], 5);
    zones_slot_released(&old.zones, (struct slot_id) { 0, 1 });
    zones_slot_released(&new.zones, (struct slot_id) { 0, 1 });
    for (uint32_t i = 0; i < metrics_shape.n; i++)
        totals[i] = shm_metrics_total(zone_memory(b), &metrics_shape, i);
    ck_assert_int_eq(totals[0], 5);
    declared_stop(&old);
    declared_stop(&new);
}
END_TEST

/* Returns what it was. */
static struct rlimit limit(int resource, rlim_t to)
{
    struct rlimit before, now;

    ck_assert_int_eq(getrlimit(resource, &before), 0);
    now = (struct rlimit) { .rlim_cur = to, .rlim_max = before.rlim_max };
    ck_assert_int_eq(setrlimit(resource, &now), 0);
    return before;
}

static const struct {
    int resource;
    rlim_t value;
    const char *call;
    bool takes_over;
} ways[] = {
    { RLIMIT_NOFILE, 1, "memfd_create() failed", false },
    { RLIMIT_NOFILE, 1, "fcntl(F_DUPFD_CLOEXEC) failed", true },
    { RLIMIT_FSIZE, 0, "ftruncate() failed", false }, /* needed by the smallest zone */
};

static void expect_failure(struct declared *declared, const struct zone *zone, const char *call)
{
    const char *text = memory_log_take(&declared->log);
    char wanted[128];

    ck_assert_uint_eq(lines_in(text), 1);
    snprintf(wanted, sizeof(wanted), "zone \"%s\" of %zu bytes could not be opened: %s", zone->name,
        zone->size, call);
    ck_assert_ptr_nonnull(strstr(text, "[emerg]"));
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in \"%s\"", wanted, text);
}

START_TEST(a_failure_takes_all_back)
{
    struct declared old, new;
    struct zone *zone;
    unsigned before;
    struct rlimit was;

    declared_start(&old);
    declared_start(&new);
    declare_map(&old, "b", 1);
    open_all(&old, NULL);
    before = open_descriptors();
    if (ways[_i].resource == RLIMIT_FSIZE)
        zone_declare(&new.zones, new.arena, &shm_map_kind, "a", 1, &tiny_shape); /* opened */
    zone = declare_map(&new, "b", 1);
    was = limit(
        ways[_i].resource, ways[_i].resource == RLIMIT_FSIZE
                               ? segment_page() + segment_pages(shm_map_kind.size(&tiny_shape))
                               : ways[_i].value);
    ck_assert_int_eq(
        zones_open(&new.zones, ways[_i].takes_over ? &old.zones : NULL, &new.log.log), -1);
    ck_assert_int_eq(setrlimit(ways[_i].resource, &was), 0);
    expect_failure(&new, zone, ways[_i].call);
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert_uint_eq(mappings_of("a"), 0);
    ck_assert_uint_eq(mappings_of("b"), 1);
    open_all(&new, &old); /* the map is whole still */
    declared_stop(&new);
    declared_stop(&old);
}
END_TEST

/* Two that fit alone, and not together. */
START_TEST(what_is_beyond_all_addresses_is_refused)
{
    const struct shm_map_shape shape = { 60 << 20, 32, 1 << 20, 0 };
    struct declared declared;

    declared_start(&declared);
    ck_assert_ptr_nonnull(
        zone_declare(&declared.zones, declared.arena, &shm_map_kind, "a", 1, &shape));
    ck_assert_ptr_null(
        zone_declare(&declared.zones, declared.arena, &shm_map_kind, "b", 1, &shape));
    ck_assert_int_eq(errno, EFBIG);
    declared_stop(&declared);
}
END_TEST

/* Passes a descriptor on as if to another process. */
START_TEST(memory_that_is_handed_on_is_taken_over)
{
    struct declared old, given, new;
    struct zone *zone;

    declared_start(&old);
    declared_start(&given);
    declared_start(&new);
    zone = declare_map(&old, "m", 3);
    open_all(&old, NULL);
    put_key(zone, "kept");
    ck_assert_int_eq(zones_adopt(&given.zones, given.arena, dup(zone->segment.fd)), 0);
    zones_close(&old.zones);
    zone = declare_map(&new, "m", 3);
    open_all(&new, &given);
    zones_close(&given.zones);
    ck_assert(has(zone, "kept"));
    ck_assert_str_eq(memory_log_take(&new.log), "");
    declared_stop(&new);
    declared_stop(&given);
    declared_stop(&old);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_declaration_makes_nothing_outside_of_memory);
    tcase_add_loop_test(tcase, some_declarations_are_refused, 0, (int)countof(declarations));
    tcase_add_test(tcase, an_open_zone_is_shared_with_children);
    tcase_add_test(tcase, memory_that_is_handed_on_is_taken_over);
    tcase_add_test(tcase, memory_is_touched_as_it_is_used);
    tcase_add_loop_test(tcase, a_zone_of_the_same_layout_is_taken_over, 0, 2);
    tcase_add_test(tcase, what_the_dead_have_counted_is_folded_once);
    tcase_add_loop_test(tcase, a_failure_takes_all_back, 0, (int)countof(ways));
    tcase_add_test(tcase, what_is_beyond_all_addresses_is_refused);
}

TEST_MAIN("zone", add_tests)

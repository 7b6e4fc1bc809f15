/* SPDX-License-Identifier: BSD-2-Clause */
/* Zones with wrong memory: damaged by a worker, or handed over by another process. */
#include "base/compiler.h"
#include "shm/declared.h"
#include "shm/map.h"
#include "shm/metrics.h"
#include "shm/zone.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct shm_map_shape map_shape = { 100, 16, 8, 0 };
static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE };
static const struct shm_metrics_shape metrics_shape = { countof(kinds), kinds };

static struct zone *declare(
    struct declared *declared, const struct zone_kind *kind, const void *shape)
{
    struct zone *zone = zone_declare(&declared->zones, declared->arena, kind, "m", 1, shape);

    ck_assert_ptr_nonnull(zone);
    return zone;
}

static void open_all(struct declared *declared, struct declared *old)
{
    ck_assert_int_eq(
        zones_open(&declared->zones, old == NULL ? NULL : &old->zones, &declared->log.log), 0);
}

START_TEST(damaged_memory_is_replaced)
{
    const struct zone_kind *kind = _i == 0 ? &shm_map_kind : &shm_metrics_kind;
    const void *shape = _i == 0 ? (const void *)&map_shape : &metrics_shape;
    struct declared old, new;
    struct zone *a, *b;
    const char *text;

    declared_start(&old);
    declared_start(&new);
    a = declare(&old, kind, shape);
    open_all(&old, NULL);
    memset(zone_memory(a), 0x5a, 64);
    b = declare(&new, kind, shape);
    open_all(&new, &old);
    text = memory_log_take(&new.log);
    ck_assert_ptr_nonnull(
        strstr(text, "[warn] zone \"m\" begins empty because the zone's memory was damaged"));
    ck_assert(kind->is(zone_memory(b), shape));
    declared_stop(&new);
    declared_stop(&old);
}
END_TEST

/* The header serves further binaries alone: the current process knows the layout. */
START_TEST(a_damaged_header_changes_nothing)
{
    struct declared old, new;
    struct zone *a, *b;

    declared_start(&old);
    declared_start(&new);
    a = declare(&old, &shm_metrics_kind, &metrics_shape);
    open_all(&old, NULL);
    shm_metrics_row(zone_memory(a), &metrics_shape, 3)[0] = 5;
    memset(a->segment.base, 0x5a, sizeof(struct zone_header));
    b = declare(&new, &shm_metrics_kind, &metrics_shape);
    open_all(&new, &old);
    ck_assert_int_eq(shm_metrics_row(zone_memory(b), &metrics_shape, 3)[0], 5);
    ck_assert_str_eq(memory_log_take(&new.log), "");
    declared_stop(&new);
    declared_stop(&old);
}
END_TEST

/* Memory handed over by a binary with another layout. */
START_TEST(memory_of_the_layout_before_begins_empty)
{
    struct zone_header header = { .magic = ZONE_MAGIC_BEFORE, .name = "m", .kind = "map" };
    int fd = memfd_create("before", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct declared given, new;

    declared_start(&given);
    declared_start(&new);
    ck_assert_int_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    ck_assert_int_eq(zones_adopt(&given.zones, given.arena, fd), 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    declare(&new, &shm_map_kind, &map_shape);
    open_all(&new, &given);
    ck_assert_ptr_nonnull(strstr(
        memory_log_take(&new.log), "zone \"m\" begins empty because the zone's layout changed"));
    declared_stop(&new);
    declared_stop(&given);
}
END_TEST

static const struct {
    size_t size;   /* descriptor of the memory */
    uint64_t told; /* in its header */
    uint32_t magic;
} no_zones[] = {
    { 0, 0, ZONE_MAGIC },
    { 10, 10, ZONE_MAGIC },
    { 4096, 4096, 1 },
    { 4096, 4096, ZONE_MAGIC }, /* no more than the header */
    { 8192, 16384, ZONE_MAGIC },
    { 10000, 10000, ZONE_MAGIC },
};

START_TEST(what_is_no_zone_is_not)
{
    struct zone_header header = { .magic = no_zones[_i].magic, .size = no_zones[_i].told };
    int fd = memfd_create("no zone", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct declared declared;

    declared_start(&declared);
    ck_assert_int_eq(ftruncate(fd, (off_t)no_zones[_i].size), 0);
    if (no_zones[_i].size >= sizeof(header))
        ck_assert_int_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    ck_assert_int_eq(zones_adopt(&declared.zones, declared.arena, fd), -1);
    ck_assert(STAILQ_EMPTY(&declared.zones));
    close(fd);
    declared_stop(&declared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, damaged_memory_is_replaced, 0, 2);
    tcase_add_test(tcase, a_damaged_header_changes_nothing);
    tcase_add_test(tcase, memory_of_the_layout_before_begins_empty);
    tcase_add_loop_test(tcase, what_is_no_zone_is_not, 0, (int)countof(no_zones));
}

TEST_MAIN("zone_damage", add_tests)

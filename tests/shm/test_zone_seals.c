/* SPDX-License-Identifier: BSD-2-Clause */
/* Seals of a zone's memory: its size is fixed, and nobody who shares it can add a seal. */
#include "shm/map.h"
#include "shm/zone.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(memory_can_be_neither_resized_nor_sealed)
{
    const struct shm_map_shape shape = { 100, 16, 8 };
    struct arena *arena = arena_create();
    struct zone *zone;
    struct zones zones;
    struct log log = { 0 };
    struct stat st;

    zones_init(&zones);
    log_init(&log, NULL, 0);
    zone = zone_declare(&zones, arena, &shm_map_kind, "sessions", 1, &shape);
    ck_assert_int_eq(zones_open(&zones, NULL, &log), 0);
    ck_assert_int_eq(ftruncate(zone->segment.fd, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(zone->segment.fd, (off_t)zone->size + 1), -1);
    ck_assert_int_eq(fcntl(zone->segment.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fstat(zone->segment.fd, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)zone->size);
    zones_close(&zones);
    arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, memory_can_be_neither_resized_nor_sealed);
}

TEST_MAIN("zone_seals", add_tests)

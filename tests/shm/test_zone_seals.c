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
    const struct fb_shm_map_shape shape = { 100, 16, 8 };
    struct fb_arena *arena = fb_arena_create();
    struct fb_zone *zone;
    struct fb_zones zones;
    struct fb_log log = { 0 };
    struct stat st;

    fb_zones_init(&zones);
    fb_log_init(&log, NULL, 0);
    zone = fb_zone_declare(&zones, arena, &fb_shm_map_kind, "sessions", 1, &shape);
    ck_assert_int_eq(fb_zones_open(&zones, NULL, &log), 0);
    ck_assert_int_eq(ftruncate(zone->fd, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(ftruncate(zone->fd, (off_t)zone->size + 1), -1);
    ck_assert_int_eq(fcntl(zone->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fstat(zone->fd, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)zone->size);
    fb_zones_close(&zones);
    fb_arena_destroy(&arena);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, memory_can_be_neither_resized_nor_sealed);
}

FB_TEST_MAIN("zone_seals", add_tests)

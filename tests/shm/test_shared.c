/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared region: its layout, worker slots, and the sum of the counters of all slots. */
#include "shm/shared.h"
#include "support/test.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDS 20000
#define COUNTED 3 /* between two folds */

static struct fb_shared *create_shared(void)
{
    struct fb_shared *shared = fb_shared_create();

    ck_assert_ptr_nonnull(shared);
    return shared;
}

static struct fb_slot_id take_slot(struct fb_shared *shared)
{
    struct fb_slot_id id;

    ck_assert(fb_slot_take(shared, &id));
    return id;
}

static uint64_t total_of(struct fb_shared *shared, enum fb_counter counter)
{
    uint64_t totals[FB_COUNTERS];

    fb_shared_totals(shared, totals);
    return totals[counter];
}

START_TEST(the_layout_is_the_version)
{
    struct fb_shared *shared = create_shared();

    ck_assert_uint_eq(shared->magic, FB_SHARED_MAGIC);
    ck_assert_uint_eq(shared->version, FB_SHARED_VERSION);
    /* a change of one of these changes the version too */
    ck_assert_uint_eq(FB_SHARED_VERSION, 2);
    ck_assert_uint_eq(sizeof(struct fb_slot), 128);
    ck_assert_uint_eq(offsetof(struct fb_slot, counters), 8);
    ck_assert_uint_eq(offsetof(struct fb_shared, slot_n), 8);
    ck_assert_uint_eq(offsetof(struct fb_shared, folded), 16);
    ck_assert_uint_eq(offsetof(struct fb_shared, side), 64);
    ck_assert_uint_eq(offsetof(struct fb_shared, accept_mutex), 128);
    ck_assert_uint_eq(offsetof(struct fb_shared, slots), 256);
    ck_assert_uint_eq(sizeof(struct fb_shared), 256 + FB_SLOT_MAX * 128);
    ck_assert_int_eq(FB_ACCEPTS, 0);
    ck_assert_int_eq(FB_HANDLED, 1);
    ck_assert_int_eq(FB_REQUESTS, 2);
    ck_assert_int_eq(FB_ACTIVE, 3);
    ck_assert_int_eq(FB_READING, 4);
    ck_assert_int_eq(FB_WRITING, 5);
    fb_shared_destroy(&shared);
    ck_assert_ptr_null(shared);
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(a_slot_has_one_life_after_the_other)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id a = take_slot(shared), b = take_slot(shared), again;

    ck_assert_uint_eq(a.slot, 0);
    ck_assert_uint_eq(b.slot, 1);
    ck_assert_uint_eq(a.serial, 1);
    ck_assert_uint_eq(shared->slot_n, 2);
    ck_assert_uint_ne(shared->slots[0].pid, 0);
    fb_slot_bury(shared, a);
    ck_assert_uint_eq(shared->slots[0].pid, 0);
    again = take_slot(shared);
    ck_assert_uint_eq(again.slot, 0);
    ck_assert_uint_eq(again.serial, 2);
    ck_assert_uint_eq(shared->slot_n, 2);
    fb_slot_bury(shared, again);
    shared->slots[0].serial = UINT32_MAX; /* 0 would mean that it was never used */
    again = take_slot(shared);
    ck_assert_uint_eq(again.serial, 1);
    fb_shared_destroy(&shared);
}
END_TEST

/* The slots of a master process beside another, whose lives are not those of any before. */
START_TEST(a_side_has_numbers_of_its_own)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id a, b;

    fb_shared_begin(shared, 1, 41);
    ck_assert_uint_eq(fb_shared_serial(shared), 41);
    a = take_slot(shared);
    b = take_slot(shared);
    ck_assert_uint_eq(a.slot, FB_SLOT_MAX);
    ck_assert_uint_eq(b.slot, FB_SLOT_MAX + 1);
    ck_assert_uint_eq(a.serial, 42);
    ck_assert_uint_eq(b.serial, 42);
    ck_assert_ptr_eq(fb_shared_slot(shared, b), &shared->slots[1]);
    fb_slot_bury(shared, b);
    b = take_slot(shared);
    ck_assert_uint_eq(b.slot, FB_SLOT_MAX + 1);
    ck_assert_uint_eq(b.serial, 43);
    ck_assert_uint_eq(fb_shared_serial(shared), 43);
    ck_assert_uint_ne(fb_slot_life(a), fb_slot_life((struct fb_slot_id) { 0, 42 }));
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(slots_end)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id id;

    for (uint32_t i = 0; i < FB_SLOT_MAX; i++)
        ck_assert_uint_eq(take_slot(shared).slot, i);
    ck_assert(!fb_slot_take(shared, &id));
    fb_slot_bury(shared, (struct fb_slot_id) { 500, 1 });
    ck_assert_uint_eq(take_slot(shared).slot, 500);
    ck_assert(!fb_slot_take(shared, &id));
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(the_dead_leave_their_counts_but_not_their_gauges)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id a = take_slot(shared), b = take_slot(shared);
    struct fb_counters *counters[2] = { &shared->slots[a.slot].counters,
        &shared->slots[b.slot].counters };

    for (int i = 0; i < FB_COUNTERS; i++) {
        fb_count(counters[0], i, 100 + i);
        fb_count(counters[1], i, i < FB_GAUGES ? 7 : 10);
        if (i >= FB_GAUGES)
            fb_count(counters[1], i, -3);
    }
    for (int i = 0; i < FB_COUNTERS; i++)
        ck_assert_uint_eq(total_of(shared, i), 107u + (unsigned)i);
    ck_assert(!fb_slot_bury(shared, a));
    for (int i = 0; i < FB_COUNTERS; i++)
        ck_assert_uint_eq(total_of(shared, i), i < FB_GAUGES ? 107u + (unsigned)i : 7u);
    fb_count(&shared->slots[take_slot(shared).slot].counters, FB_ACCEPTS, 1); /* the next life's */
    ck_assert_uint_eq(total_of(shared, FB_ACCEPTS), 108);
    fb_slot_bury(shared, b);
    ck_assert_uint_eq(total_of(shared, FB_HANDLED), 108);
    ck_assert_uint_eq(total_of(shared, FB_ACTIVE), 0);
    ck_assert_uint_eq(shared->folds % 2, 0);
    shared_check(shared);
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(the_dead_leave_the_accept_mutex)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id a = take_slot(shared), b = take_slot(shared);

    ck_assert(fb_shm_lock_try(&shared->accept_mutex, a));
    ck_assert(!fb_slot_bury(shared, b));
    ck_assert(!fb_shm_lock_try(&shared->accept_mutex, b));
    ck_assert(fb_slot_bury(shared, a));
    b = take_slot(shared);
    ck_assert(fb_shm_lock_try(&shared->accept_mutex, b));
    shared_check(shared);
    fb_shared_destroy(&shared);
}
END_TEST

/* Totals never go back, and never beyond what was counted. */
static _Noreturn void read_on(struct fb_shared *shared)
{
    uint64_t last = 0, now;

    do {
        now = total_of(shared, FB_ACCEPTS);
        if (now < last || now > FOLDS * COUNTED)
            _exit(1);
        last = now;
    } while (now < FOLDS * COUNTED);
    _exit(0);
}

START_TEST(totals_are_right_while_the_master_folds)
{
    struct fb_shared *shared = create_shared();
    pid_t pid = fork();
    int status;

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        read_on(shared);
    for (int i = 0; i < FOLDS; i++) {
        struct fb_slot_id id;

        if (!fb_slot_take(shared, &id)) /* checked without ck_assert, which takes its time */
            break;
        for (int j = 0; j < COUNTED; j++)
            fb_count(&shared->slots[id.slot].counters, FB_ACCEPTS, 1);
        fb_slot_bury(shared, id);
    }
    ck_assert_uint_eq(total_of(shared, FB_ACCEPTS), FOLDS * COUNTED);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(a_master_that_died_while_folding_keeps_nobody)
{
    struct fb_shared *shared = create_shared();

    fb_count(&shared->slots[take_slot(shared).slot].counters, FB_ACCEPTS, 5);
    shared->folds++;
    ck_assert_uint_eq(total_of(shared, FB_ACCEPTS), 5);
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(children_share_it)
{
    struct fb_shared *shared = create_shared();
    struct fb_slot_id id = take_slot(shared);
    int status;
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        fb_count(&shared->slots[id.slot].counters, FB_REQUESTS, 42);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_uint_eq(total_of(shared, FB_REQUESTS), 42);
    fb_shared_destroy(&shared);
}
END_TEST

START_TEST(slots_are_touched_as_they_come_into_use)
{
    struct fb_shared *shared = create_shared();
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (sizeof(*shared) + page - 1) / page;
    unsigned char in_core[sizeof(struct fb_shared) / 4096 + 2];
    size_t touched = 0;

    ck_assert_uint_le(pages, sizeof(in_core));
    take_slot(shared);
    total_of(shared, FB_ACCEPTS);
    ck_assert_int_eq(mincore(shared, sizeof(*shared), in_core), 0);
    for (size_t i = 0; i < pages; i++)
        touched += in_core[i] & 1;
    ck_assert_uint_eq(touched, 1);
    fb_shared_destroy(&shared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_layout_is_the_version);
    tcase_add_test(tcase, a_slot_has_one_life_after_the_other);
    tcase_add_test(tcase, a_side_has_numbers_of_its_own);
    tcase_add_test(tcase, slots_end);
    tcase_add_test(tcase, the_dead_leave_their_counts_but_not_their_gauges);
    tcase_add_test(tcase, the_dead_leave_the_accept_mutex);
    tcase_add_test(tcase, totals_are_right_while_the_master_folds);
    tcase_add_test(tcase, a_master_that_died_while_folding_keeps_nobody);
    tcase_add_test(tcase, children_share_it);
    tcase_add_test(tcase, slots_are_touched_as_they_come_into_use);
}

FB_TEST_MAIN("shared", add_tests)

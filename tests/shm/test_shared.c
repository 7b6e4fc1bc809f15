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

static struct shared *create_shared(void)
{
    struct shared *shared = shared_create(true);

    ck_assert_ptr_nonnull(shared);
    return shared;
}

static struct slot_id take_slot(struct shared *shared)
{
    struct slot_id id;

    ck_assert(slot_acquire(shared, &id));
    return id;
}

static uint64_t total_of(struct shared *shared, enum counter counter)
{
    uint64_t totals[COUNTERS];

    shared_totals(shared, totals);
    return totals[counter];
}

START_TEST(the_layout_is_the_version)
{
    struct shared *shared = create_shared();
    size_t page = segment_page();

    ck_assert_uint_eq(shared->published->magic, SHARED_MAGIC);
    ck_assert_uint_eq(shared->published->version, SHARED_VERSION);
    /* a change of any of the numbers below changes the version too */
    ck_assert_uint_eq(SHARED_VERSION, 9);
    ck_assert_uint_eq(offsetof(struct slot, counters), 0);
    ck_assert_uint_eq(offsetof(struct slot, heartbeat), 104);
    ck_assert_uint_eq(offsetof(struct shared_published, slot_n), 8);
    ck_assert_uint_eq(offsetof(struct shared_published, folded), 16);
    ck_assert_uint_eq(offsetof(struct shared_common, accept_mutex), 0);
    ck_assert_uint_eq(offsetof(struct shared_common, connection_numbers), CACHE_LINE);
    ck_assert_uint_eq(offsetof(struct shared_published, slots), 104);
    ck_assert_uint_eq(offsetof(struct shared_published, log_override), 104 + 8 * SLOT_MAX);
    ck_assert_ptr_eq((char *)shared->common,
        (char *)shared->published + segment_pages(sizeof(struct shared_published)));
    ck_assert_ptr_eq(
        (char *)shared_slot(shared, (struct slot_id) { 3, 1 }), (char *)shared->common + 4 * page);
    ck_assert_uint_eq(shared->segment.size,
        segment_pages(sizeof(struct shared_published)) + (1 + SLOT_MAX) * page);
    ck_assert_int_eq(COUNTER_ACCEPTS, 0);
    ck_assert_int_eq(COUNTER_HANDLED, 1);
    ck_assert_int_eq(COUNTER_REQUESTS, 2);
    ck_assert_int_eq(COUNTER_ACTIVE, 7);
    ck_assert_int_eq(COUNTER_READING, 8);
    ck_assert_int_eq(COUNTER_WRITING, 9);
    shared_destroy(&shared);
    ck_assert_ptr_null(shared);
    shared_destroy(&shared);
}
END_TEST

START_TEST(a_slot_has_one_life_after_the_other)
{
    struct shared *shared = create_shared();
    struct slot_id a = take_slot(shared), b = take_slot(shared), again;

    ck_assert_uint_eq(a.slot, 0);
    ck_assert_uint_eq(b.slot, 1);
    ck_assert_uint_eq(a.serial, 1);
    ck_assert_uint_eq(shared->published->slot_n, 2);
    ck_assert(shared->records[0].used);
    ck_assert(slot_is_used(shared, a));
    ck_assert(!slot_is_used(shared, (struct slot_id) { 0, 2 }));
    slot_release(shared, a);
    ck_assert(!shared->records[0].used);
    ck_assert(!slot_is_used(shared, a));
    ck_assert(!slot_is_used(shared, (struct slot_id) { 0, 0 }));
    ck_assert(!slot_is_used(shared, (struct slot_id) { UINT32_MAX, 1 }));
    again = take_slot(shared);
    ck_assert_uint_eq(again.slot, 0);
    ck_assert_uint_eq(again.serial, 2);
    ck_assert_uint_eq(shared->published->slot_n, 2);
    slot_release(shared, again);
    shared->records[0].serial = UINT32_MAX; /* 0 would mean that it was never used */
    again = take_slot(shared);
    ck_assert_uint_eq(again.serial, 1);
    shared_destroy(&shared);
}
END_TEST

/* The slots of a master process beside another master, with lives distinct from all before. */
START_TEST(a_side_has_numbers_of_its_own)
{
    struct shared *shared = create_shared();
    struct slot_id a, b;

    shared_begin(shared, 1, 41);
    ck_assert_uint_eq(shared_serial(shared), 41);
    a = take_slot(shared);
    b = take_slot(shared);
    ck_assert_uint_eq(a.slot, SLOT_MAX);
    ck_assert_uint_eq(b.slot, SLOT_MAX + 1);
    ck_assert_uint_eq(a.serial, 42);
    ck_assert_uint_eq(b.serial, 42);
    ck_assert_ptr_eq(shared_slot(shared, b), shared_slot(shared, (struct slot_id) { 1, 1 }));
    slot_release(shared, b);
    b = take_slot(shared);
    ck_assert_uint_eq(b.slot, SLOT_MAX + 1);
    ck_assert_uint_eq(b.serial, 43);
    ck_assert_uint_eq(shared_serial(shared), 43);
    ck_assert_uint_ne(slot_incarnation(a), slot_incarnation((struct slot_id) { 0, 42 }));
    shared_destroy(&shared);
}
END_TEST

START_TEST(slots_end)
{
    struct shared *shared = create_shared();
    struct slot_id id;

    for (uint32_t i = 0; i < SLOT_MAX; i++)
        ck_assert_uint_eq(take_slot(shared).slot, i);
    ck_assert(!slot_acquire(shared, &id));
    slot_release(shared, (struct slot_id) { 500, 1 });
    ck_assert_uint_eq(take_slot(shared).slot, 500);
    ck_assert(!slot_acquire(shared, &id));
    shared_destroy(&shared);
}
END_TEST

START_TEST(the_dead_leave_their_counts_but_not_their_gauges)
{
    struct shared *shared = create_shared();
    struct slot_id a = take_slot(shared), b = take_slot(shared);
    struct counters *counters[2] = { &shared_slot(shared, a)->counters,
        &shared_slot(shared, b)->counters };

    for (int i = 0; i < COUNTERS; i++) {
        counters_add(counters[0], i, 100 + i);
        counters_add(counters[1], i, i < COUNTER_GAUGES ? 7 : 10);
        if (i >= COUNTER_GAUGES)
            counters_add(counters[1], i, -3);
    }
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_uint_eq(total_of(shared, i), 107u + (unsigned)i);
    ck_assert(!slot_release(shared, a));
    for (int i = 0; i < COUNTERS; i++)
        ck_assert_uint_eq(total_of(shared, i), i < COUNTER_GAUGES ? 107u + (unsigned)i : 7u);
    a = take_slot(shared);
    counters_add(&shared_slot(shared, a)->counters, COUNTER_ACCEPTS, 1); /* the next life's */
    ck_assert_uint_eq(total_of(shared, COUNTER_ACCEPTS), 108);
    slot_release(shared, b);
    ck_assert_uint_eq(total_of(shared, COUNTER_HANDLED), 108);
    ck_assert_uint_eq(total_of(shared, COUNTER_ACTIVE), 0);
    ck_assert_uint_eq(shared->published->folds % 2, 0);
    shared_check(shared);
    shared_destroy(&shared);
}
END_TEST

START_TEST(the_dead_leave_the_accept_mutex)
{
    struct shared *shared = create_shared();
    struct slot_id a = take_slot(shared), b = take_slot(shared);

    ck_assert(shm_lock_take(&shared->common->accept_mutex, 0, shm_lock_word(a, 1)));
    ck_assert(!slot_release(shared, b));
    ck_assert(!shm_lock_take(&shared->common->accept_mutex, 0, shm_lock_word(b, 1)));
    ck_assert(slot_release(shared, a));
    b = take_slot(shared);
    ck_assert(shm_lock_take(&shared->common->accept_mutex, 0, shm_lock_word(b, 1)));
    shared_check(shared);
    shared_destroy(&shared);
}
END_TEST

/* Totals never go back, and never beyond the counted events. */
static _Noreturn void read_on(struct shared *shared)
{
    uint64_t last = 0, now;

    do {
        now = total_of(shared, COUNTER_ACCEPTS);
        if (now < last || now > FOLDS * COUNTED)
            _exit(1);
        last = now;
    } while (now < FOLDS * COUNTED);
    _exit(0);
}

START_TEST(totals_are_right_while_the_master_folds)
{
    struct shared *shared = create_shared();
    pid_t pid = fork();
    int status;

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        read_on(shared);
    for (int i = 0; i < FOLDS; i++) {
        struct slot_id id;

        if (!slot_acquire(shared, &id)) /* checked without ck_assert, which takes its time */
            break;
        for (int j = 0; j < COUNTED; j++)
            counters_add(&shared_slot(shared, id)->counters, COUNTER_ACCEPTS, 1);
        slot_release(shared, id);
    }
    ck_assert_uint_eq(total_of(shared, COUNTER_ACCEPTS), FOLDS * COUNTED);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    shared_destroy(&shared);
}
END_TEST

START_TEST(a_master_that_died_while_folding_keeps_nobody)
{
    struct shared *shared = create_shared();

    counters_add(&shared_slot(shared, take_slot(shared))->counters, COUNTER_ACCEPTS, 5);
    shared->published->folds++;
    ck_assert_uint_eq(total_of(shared, COUNTER_ACCEPTS), 5);
    shared_destroy(&shared);
}
END_TEST

/* Random bytes in all memory writable by a worker. */
START_TEST(nonsense_leads_nowhere_else)
{
    struct shared *shared = create_shared();
    struct slot_id ids[3], again;
    uint64_t totals[COUNTERS];

    shared_begin(shared, 1, 7);
    for (int i = 0; i < 3; i++)
        ids[i] = take_slot(shared);
    for (int trial = 0; trial < 1000; trial++) {
        uint32_t victim = (uint32_t)trial % 3;

        arc4random_buf(shared->common, shared->page);
        arc4random_buf(shared_slot(shared, ids[victim]), shared->page);
        shared_totals(shared, totals);
        heartbeat_callback(heartbeat_now(&shared_slot(shared, ids[victim])->heartbeat));
        slot_release(shared, ids[victim]);
        again = take_slot(shared);
        ck_assert_uint_eq(again.slot, ids[victim].slot);
        ck_assert_uint_eq(again.serial, ids[victim].serial + 1);
        ids[victim] = again;
        ck_assert_uint_eq(shared->half, 1);
        ck_assert_uint_eq(shared->published->slot_n, 3);
    }
    ck_assert_uint_le(shared_serial(shared), 7 + 1001);
    shared_destroy(&shared);
}
END_TEST

START_TEST(serials_begin_again)
{
    struct shared *shared = create_shared();
    struct slot_id id;

    shared_begin(shared, 0, UINT32_MAX - 1);
    id = take_slot(shared);
    ck_assert_uint_eq(id.serial, UINT32_MAX);
    ck_assert_uint_eq(shared_serial(shared), 0); /* 2^32 - 1 is no serial to go on from */
    slot_release(shared, id);
    ck_assert_uint_eq(take_slot(shared).serial, 1);
    shared_destroy(&shared);
}
END_TEST

START_TEST(children_share_it)
{
    struct shared *shared = shared_create(false);
    struct slot_id id = take_slot(shared);
    int status;
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        if (shared_enter(shared, id) != NULL)
            _exit(1);
        counters_add(&shared_slot(shared, id)->counters, COUNTER_REQUESTS, 42);
        _exit(shm_lock_take(&shared->common->accept_mutex, 0, shm_lock_word(id, 1)) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(total_of(shared, COUNTER_REQUESTS), 42);
    ck_assert(slot_release(shared, id));
    shared_destroy(&shared);
}
END_TEST

START_TEST(slots_are_touched_as_they_come_into_use)
{
    struct shared *shared = create_shared();
    size_t page = segment_page(), pages = shared->segment.size / page;
    unsigned char in_core[4 + SLOT_MAX];
    size_t touched = 0;

    ck_assert_uint_le(pages, sizeof(in_core));
    take_slot(shared);
    total_of(shared, COUNTER_ACCEPTS);
    ck_assert_int_eq(mincore(shared->segment.base, shared->segment.size, in_core), 0);
    for (size_t i = 0; i < pages; i++)
        touched += in_core[i] & 1;
    ck_assert_uint_eq(touched, 2); /* the published page, and the slot's */
    shared_destroy(&shared);
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
    tcase_add_test(tcase, nonsense_leads_nowhere_else);
    tcase_add_test(tcase, serials_begin_again);
    tcase_add_test(tcase, children_share_it);
    tcase_add_test(tcase, slots_are_touched_as_they_come_into_use);
}

TEST_MAIN("shared", add_tests)

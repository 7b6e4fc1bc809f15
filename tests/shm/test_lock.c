/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks owned by worker slots: one holder at a time, and taken back from dead ones. */
#include "shm/shared.h"
#include "support/test.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4
#define ROUNDS 5000

START_TEST(it_is_held_by_one)
{
    struct shm_lock lock = { 0 };
    struct slot_id a = { 0, 1 }, b = { 1, 1 };

    ck_assert(shm_lock_try(&lock, a));
    ck_assert(!shm_lock_try(&lock, a)); /* held: its holder cannot take it again either */
    ck_assert(!shm_lock_try(&lock, b));
    shm_lock_release(&lock, a);
    ck_assert(shm_lock_try(&lock, b));
    ck_assert(!shm_lock_try(&lock, a));
    shm_lock_release(&lock, b);
    ck_assert_uint_eq(lock.owner, 0);
}
END_TEST

START_TEST(only_the_dead_life_of_a_slot_loses_it)
{
    static const struct slot_id others[] = { { 3, 6 }, { 3, 8 }, { 2, 7 }, { 7, 3 }, { 0, 1 } };
    struct shm_lock lock = { 0 };
    struct slot_id holder = { 3, 7 };

    ck_assert(!shm_lock_reclaim(&lock, holder)); /* free */
    ck_assert(shm_lock_try(&lock, holder));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ck_assert(!shm_lock_reclaim(&lock, others[i]));
        ck_assert(!shm_lock_try(&lock, others[i]));
    }
    ck_assert(shm_lock_reclaim(&lock, holder));
    ck_assert(!shm_lock_reclaim(&lock, holder));
    ck_assert(shm_lock_try(&lock, others[0]));
    shm_lock_release(&lock, others[0]);
}
END_TEST

START_TEST(the_last_slot_and_serial_are_owners_too)
{
    struct shm_lock lock = { 0 };
    struct slot_id last = { SLOT_MAX - 1, UINT32_MAX }, first = { 0, 1 };

    ck_assert(shm_lock_try(&lock, last));
    ck_assert(!shm_lock_try(&lock, first));
    ck_assert(shm_lock_reclaim(&lock, last));
}
END_TEST

/* Plain data behind a lock, changed without atomic instructions. */
struct guarded {
    struct shm_lock lock;
    volatile unsigned n, inside;
};

static void add_under_the_lock(struct guarded *guarded, struct slot_id id)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (!shm_lock_try(&guarded->lock, id))
            sched_yield();
        if (guarded->inside++ != 0)
            _exit(1);
        guarded->n++;
        guarded->inside--;
        shm_lock_release(&guarded->lock, id);
    }
}

START_TEST(it_keeps_processes_apart)
{
    struct shared *shared = shared_create_single();
    struct guarded *guarded;

    ck_assert_ptr_nonnull(shared);
    /* the room of a slot that nobody uses here */
    guarded = (struct guarded *)(void *)shared_slot(shared, (struct slot_id) { 100, 1 });
    for (unsigned w = 0; w < WORKERS; w++) {
        pid_t pid = fork();

        ck_assert_int_ne(pid, -1);
        if (pid == 0) {
            add_under_the_lock(guarded, (struct slot_id) { w, 1 });
            _exit(0);
        }
    }
    for (unsigned w = 0; w < WORKERS; w++) {
        int status;

        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(guarded->n, WORKERS * ROUNDS);
    ck_assert_uint_eq(guarded->lock.owner, 0);
    shared_destroy(&shared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, it_is_held_by_one);
    tcase_add_test(tcase, only_the_dead_life_of_a_slot_loses_it);
    tcase_add_test(tcase, the_last_slot_and_serial_are_owners_too);
    tcase_add_test(tcase, it_keeps_processes_apart);
}

TEST_MAIN("lock", add_tests)

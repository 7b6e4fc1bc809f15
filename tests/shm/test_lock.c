/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks owned by worker slots: a single holder at a time, and taken back from dead holders. */
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
    uint64_t a = shm_lock_word((struct slot_id) { 0, 1 }, 0);
    uint64_t b = shm_lock_word((struct slot_id) { 1, 1 }, 0);

    ck_assert(shm_lock_take(&lock, 0, a));
    ck_assert(!shm_lock_take(&lock, 0, a)); /* held: the holder cannot take the lock again either */
    ck_assert(!shm_lock_take(&lock, 0, b));
    shm_lock_release(&lock, a);
    ck_assert(shm_lock_take(&lock, 0, b));
    ck_assert(!shm_lock_take(&lock, 0, a));
    shm_lock_release(&lock, b);
    ck_assert_uint_eq(lock.word, 0);
}
END_TEST

START_TEST(only_the_dead_life_of_a_slot_loses_it)
{
    static const struct slot_id others[] = { { 3, 6 }, { 3, 8 }, { 2, 7 }, { 7, 3 }, { 0, 1 } };
    struct shm_lock lock = { 0 };
    struct slot_id holder = { 3, 7 };

    ck_assert(!shm_lock_reclaim(&lock, holder)); /* free */
    ck_assert(shm_lock_take(&lock, 0, shm_lock_word(holder, 5)));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ck_assert(!shm_lock_reclaim(&lock, others[i]));
        ck_assert(!shm_lock_take(&lock, 0, shm_lock_word(others[i], 5)));
    }
    ck_assert(shm_lock_reclaim(&lock, holder));
    ck_assert(!shm_lock_reclaim(&lock, holder));
    ck_assert(shm_lock_take(&lock, 0, shm_lock_word(others[0], 0)));
    shm_lock_release(&lock, shm_lock_word(others[0], 0));
}
END_TEST

START_TEST(the_last_slot_and_serial_are_owners_too)
{
    struct shm_lock lock = { 0 };
    struct slot_id last = { SLOT_MAX - 1, UINT32_MAX }, first = { 0, 1 };

    ck_assert(shm_lock_take(&lock, 0, shm_lock_word(last, UINT32_MAX)));
    ck_assert(!shm_lock_take(&lock, 0, shm_lock_word(first, 0)));
    ck_assert(shm_lock_reclaim(&lock, last));
}
END_TEST

/* A turn's number wraps, and touches neither slot nor serial. */
START_TEST(a_word_names_holder_and_turn)
{
    static const struct slot_id ids[] = { { 0, 1 }, { SLOT_HALVES * SLOT_MAX - 1, UINT32_MAX } };

    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        for (uint32_t turn = UINT32_MAX - 1; turn != 3; turn++) {
            uint64_t word = shm_lock_word(ids[i], turn);

            ck_assert_uint_eq(shm_lock_id(word).slot, ids[i].slot);
            ck_assert_uint_eq(shm_lock_id(word).serial, ids[i].serial);
            ck_assert_uint_ne(word, shm_lock_word(ids[i], turn + 1));
        }
    ck_assert_uint_eq(
        shm_lock_word(ids[0], 1), shm_lock_word(ids[0], 1 + (1u << SHM_LOCK_TURN_BITS)));
}
END_TEST

START_TEST(it_is_taken_from_a_turn)
{
    struct shm_lock lock = { 0 };
    struct slot_id a = { 3, 7 };
    uint64_t first = shm_lock_word(a, 1), second = shm_lock_word(a, 2);
    uint64_t b = shm_lock_word((struct slot_id) { 4, 7 }, 1);

    ck_assert(shm_lock_take(&lock, 0, first));
    shm_lock_release(&lock, first);
    ck_assert(shm_lock_take(&lock, 0, second));
    ck_assert(!shm_lock_take(&lock, first, b)); /* the holder has turned since */
    ck_assert(shm_lock_take(&lock, second, b));
    shm_lock_release(&lock, second); /* no longer its own: nothing happens */
    ck_assert_uint_eq(shm_lock_owner(&lock), b);
    ck_assert(!shm_lock_reclaim(&lock, a));
    shm_lock_release(&lock, b);
    ck_assert_uint_eq(shm_lock_owner(&lock), 0);
}
END_TEST

/* Plain data behind a lock, changed without atomic instructions. */
struct guarded {
    struct shm_lock lock;
    volatile unsigned n, inside;
};

static void add_under_the_lock(struct guarded *guarded, struct slot_id id)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        while (!shm_lock_take(&guarded->lock, 0, shm_lock_word(id, i)))
            sched_yield();
        if (guarded->inside++ != 0)
            _exit(1);
        guarded->n++;
        guarded->inside--;
        shm_lock_release(&guarded->lock, shm_lock_word(id, i));
    }
}

START_TEST(it_keeps_processes_apart)
{
    struct shared *shared = shared_create(true);
    struct guarded *guarded;

    ck_assert_ptr_nonnull(shared);
    /* the room of a slot unused here */
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
    ck_assert_uint_eq(guarded->lock.word, 0);
    shared_destroy(&shared);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, it_is_held_by_one);
    tcase_add_test(tcase, only_the_dead_life_of_a_slot_loses_it);
    tcase_add_test(tcase, the_last_slot_and_serial_are_owners_too);
    tcase_add_test(tcase, a_word_names_holder_and_turn);
    tcase_add_test(tcase, it_is_taken_from_a_turn);
    tcase_add_test(tcase, it_keeps_processes_apart);
}

TEST_MAIN("lock", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of ticket keys: keys that change in time, half keys, and writers that are killed. */
#include "keeper/ticket_ring.h"
#include "support/test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFETIME 1000
#define CLAIM 100    /* the time that a writer has */
#define SLOT_N 104   /* bytes of a key in the memory */
#define SLOT_NAME 16 /* begin of the name within a key */

static uint64_t memory[TLS_TICKETS_SIZE / 8];
static struct ticket_ring ring;

static void begin(void)
{
    memset(memory, 0, sizeof(memory));
    ticket_ring_init(&ring, memory, LIFETIME);
}

static struct ticket_key take(uint64_t now)
{
    struct ticket_key key;

    ck_assert_int_eq(ticket_ring_take(&ring, now, &key), 0);
    return key;
}

/* Whether the ring has the key by its name, of that age. */
static void check_age(const struct ticket_key *key, enum ticket_age age)
{
    struct ticket_key found;

    ck_assert_int_eq(ticket_ring_find(&ring, key->name, &found), age);
    if (age != TICKET_UNKNOWN)
        ck_assert_mem_eq(&found, key, sizeof(found));
}

static bool same(const struct ticket_key *one, const struct ticket_key *other)
{
    return memcmp(one, other, sizeof(*one)) == 0;
}

START_TEST(a_key_lives_its_time)
{
    struct ticket_key first = take(5), again = take(5 + LIFETIME - 1), second = take(5 + LIFETIME);
    uint8_t zero[TICKET_SECRET_MOST] = { 0 };

    ck_assert_uint_eq(first.size, 32);
    ck_assert(same(&first, &again) && !same(&first, &second));
    ck_assert_int_ne(memcmp(first.name, second.name, TICKET_NAME), 0);
    ck_assert_int_ne(memcmp(first.cipher, second.cipher, sizeof(zero)), 0);
    ck_assert_int_ne(memcmp(first.mac, second.mac, sizeof(zero)), 0);
    ck_assert_int_ne(memcmp(first.cipher, first.mac, sizeof(zero)), 0);
    ck_assert_int_ne(memcmp(first.cipher, zero, sizeof(zero)), 0);
}
END_TEST

START_TEST(three_keys_decrypt)
{
    struct ticket_key keys[6];

    for (uint64_t i = 0; i < 6; i++) {
        keys[i] = take(i * LIFETIME);
        check_age(&keys[i], TICKET_NEWEST);
        if (i >= 1)
            check_age(&keys[i - 1], TICKET_OLDER);
        if (i >= 2)
            check_age(&keys[i - 2], TICKET_OLDER);
        if (i >= 3)
            check_age(&keys[i - 3], TICKET_UNKNOWN);
    }
}
END_TEST

START_TEST(rings_share_their_memory)
{
    struct ticket_ring other;
    struct ticket_key key = take(0), theirs;

    ticket_ring_init(&other, memory, 10 * LIFETIME);
    ck_assert_int_eq(ticket_ring_take(&other, LIFETIME, &theirs), 0); /* lives longer there */
    ck_assert(same(&key, &theirs));
    key = take(LIFETIME);
    ck_assert_int_eq(ticket_ring_take(&other, LIFETIME, &theirs), 0);
    ck_assert(same(&key, &theirs));
}
END_TEST

/* Finds the slot of a key. */
static uint8_t *slot_of(const struct ticket_key *key)
{
    uint8_t *name = memmem(memory, sizeof(memory), key->name, TICKET_NAME);

    ck_assert_ptr_nonnull(name);
    return name - SLOT_NAME;
}

/* Every byte of a key counts; the damaged key is replaced. */
START_TEST(a_damaged_key_is_not_used)
{
    for (unsigned i = 0; i < SLOT_N; i++) {
        struct ticket_key first, second, third;

        begin();
        first = take(0);
        second = take(LIFETIME);
        slot_of(&second)[i] ^= 1;
        check_age(&second, TICKET_UNKNOWN);
        check_age(&first, TICKET_NEWEST);
        third = take(LIFETIME);
        ck_assert(!same(&third, &second) && !same(&third, &first));
        check_age(&first, TICKET_OLDER);
    }
}
END_TEST

/* A writer that was killed has written some words of a key over an older key. */
START_TEST(half_a_key_is_not_used)
{
    for (unsigned n = 8; n < SLOT_N; n += 8) {
        struct ticket_key keys[4], found;
        uint8_t old[SLOT_N], *slot;

        begin();
        for (uint64_t i = 0; i < 3; i++)
            keys[i] = take(i * LIFETIME);
        slot = slot_of(&keys[0]);
        memcpy(old, slot, SLOT_N);
        keys[3] = take(3 * LIFETIME);
        ck_assert_ptr_eq(slot_of(&keys[3]), slot);
        memcpy(slot + n, old + n, SLOT_N - n);
        ck_assert_int_eq(ticket_ring_find(&ring, keys[0].name, &found), TICKET_UNKNOWN);
        ck_assert_int_eq(ticket_ring_find(&ring, keys[3].name, &found), TICKET_UNKNOWN);
        check_age(&keys[2], TICKET_NEWEST);
        check_age(&keys[1], TICKET_OLDER);
        keys[3] = take(3 * LIFETIME);
        check_age(&keys[3], TICKET_NEWEST);
        check_age(&keys[2], TICKET_OLDER);
    }
}
END_TEST

START_TEST(a_writer_s_claim_ends)
{
    struct ticket_key first, key;

    memory[0] = 50 + CLAIM; /* the claim of a writer that began at 50 */
    ck_assert_int_eq(ticket_ring_take(&ring, 50, &key), -1);
    ck_assert_int_eq(ticket_ring_take(&ring, 50 + CLAIM - 1, &key), -1);
    first = take(50 + CLAIM);
    ck_assert_uint_eq(memory[0], 0); /* given back */
    memory[0] = 2 * LIFETIME + CLAIM;
    key = take(2 * LIFETIME); /* due, but the old key does */
    ck_assert(same(&first, &key));
    key = take(2 * LIFETIME + CLAIM);
    ck_assert(!same(&first, &key));
}
END_TEST

START_TEST(a_claim_that_nobody_made_is_damage)
{
    struct ticket_key first, second;

    memory[0] = UINT64_MAX;
    first = take(0);
    memory[0] = LIFETIME + CLAIM + 1;
    second = take(LIFETIME);
    ck_assert(!same(&first, &second));
    ck_assert_uint_eq(memory[0], 0);
}
END_TEST

/* ---- Many writers, which are killed ---- */

#define WRITERS 4
#define KILLS 60

/* Memory that the processes share. */
struct arena {
    uint64_t memory[TLS_TICKETS_SIZE / 8];
    _Atomic uint64_t now;            /* passes with each key that is taken */
    _Atomic uint64_t taken[WRITERS]; /* progress of a writer */
    _Atomic unsigned wrong;
};

/* Takes keys, each of which is due, and reads each back. Keys of a name are equal. */
static _Noreturn void write_keys(struct arena *arena, unsigned writer)
{
    for (;;) {
        struct ticket_key key, found;
        uint64_t now = atomic_fetch_add(&arena->now, 1);

        if (ticket_ring_take(&ring, now, &key) == 0 &&
            ticket_ring_find(&ring, key.name, &found) != TICKET_UNKNOWN && !same(&key, &found))
            arena->wrong++;
        arena->taken[writer]++;
    }
}

static pid_t start_writer(struct arena *arena, unsigned writer)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_keys(arena, writer);
    }
    return pid;
}

static void stop_writer(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(writers_may_be_killed)
{
    struct arena *arena =
        mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[WRITERS];
    struct ticket_key key, next;

    ck_assert_ptr_ne(arena, MAP_FAILED);
    ticket_ring_init(&ring, arena->memory, 1);
    for (unsigned i = 0; i < WRITERS; i++)
        pids[i] = start_writer(arena, i);
    for (unsigned i = 0; i < KILLS; i++) {
        unsigned writer = i % WRITERS;
        uint64_t until = arena->taken[writer] + 50 + 37 * i;

        while (arena->taken[writer] < until)
            sched_yield();
        stop_writer(pids[writer]);
        pids[writer] = start_writer(arena, writer);
    }
    for (unsigned i = 0; i < WRITERS; i++)
        stop_writer(pids[i]);
    ck_assert_uint_eq(arena->wrong, 0);
    /* keys come after whatever the last has left behind */
    key = take(arena->now + CLAIM);
    next = take(arena->now + CLAIM + 1);
    ck_assert(!same(&key, &next));
    check_age(&key, TICKET_OLDER);
    check_age(&next, TICKET_NEWEST);
    munmap(arena, sizeof(*arena));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, NULL);
    tcase_add_test(tcase, a_key_lives_its_time);
    tcase_add_test(tcase, three_keys_decrypt);
    tcase_add_test(tcase, rings_share_their_memory);
    tcase_add_test(tcase, a_damaged_key_is_not_used);
    tcase_add_test(tcase, half_a_key_is_not_used);
    tcase_add_test(tcase, a_writer_s_claim_ends);
    tcase_add_test(tcase, a_claim_that_nobody_made_is_damage);
    tcase_add_test(tcase, writers_may_be_killed);
}

TEST_MAIN("ticket_ring", add_tests)

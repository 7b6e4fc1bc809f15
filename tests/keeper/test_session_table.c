/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of sessions with servers: their life, the oldest of a full set, damage, and writers
 * that are killed. */
#include "keeper/session_table.h"
#include "support/test.h"
#include "tls/engine.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAYS 4 /* slots of a key */

static uint8_t *memory;
static struct session_table table;

static void begin(void)
{
    memory =
        mmap(NULL, TLS_TICKETS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    session_table_init(&table, memory);
}

static void end(void)
{
    munmap(memory, TLS_TICKETS_SIZE);
}

/* A key of the set of all keys here. */
static const uint8_t *key_of(unsigned number)
{
    static uint8_t key[SESSION_KEY];

    memset(key, 0, sizeof(key));
    memcpy(key + 1, &number, sizeof(number));
    return key;
}

/* Puts n equal bytes. */
static void put(unsigned key, uint64_t now, uint64_t ends, uint8_t fill, size_t n)
{
    uint8_t bytes[SESSION_MOST];

    memset(bytes, fill, n);
    session_table_put(&table, key_of(key), now, ends, bytes, n);
}

/* Whether n equal bytes are found; 0: no session is. */
static bool has(unsigned key, uint64_t now, uint8_t fill, size_t n)
{
    uint8_t bytes[SESSION_MOST];
    struct session_found found;
    size_t length = session_table_find(&table, key_of(key), now, bytes, &found);

    if (length != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != fill)
            return false;
    return true;
}

/* Drops what is found now. */
static void drop(unsigned key, uint64_t now)
{
    uint8_t bytes[SESSION_MOST];
    struct session_found found;

    session_table_find(&table, key_of(key), now, bytes, &found);
    session_table_drop(&table, key_of(key), &found);
}

START_TEST(sessions_live_their_time)
{
    uint8_t bytes[SESSION_MOST];
    struct session_found found;

    ck_assert(has(1, 10, 0, 0));
    put(1, 10, 20, 'a', 1);
    put(2, 10, 30, 'b', SESSION_MOST);
    ck_assert(has(1, 19, 'a', 1));
    ck_assert(has(1, 20, 0, 0));
    ck_assert(has(2, 29, 'b', SESSION_MOST));
    ck_assert_uint_gt(session_table_find(&table, key_of(2), 10, bytes, &found), 0);
    ck_assert_uint_eq(found.ends_ms, 30);
    put(1, 15, 40, 'c', 100);
    ck_assert(has(1, 39, 'c', 100));
    drop(1, 16);
    ck_assert(has(1, 16, 0, 0));
    ck_assert(has(2, 16, 'b', SESSION_MOST));
    drop(3, 16);
}
END_TEST

START_TEST(a_full_set_forgets_the_oldest)
{
    for (unsigned i = 0; i < WAYS; i++)
        put(i, 10 + i, 100, 'a', 10);
    put(0, 20, 100, 'b', 10); /* in its place */
    put(9, 21, 100, 'c', 10);
    ck_assert(has(0, 22, 'b', 10));
    ck_assert(has(1, 22, 0, 0));
    ck_assert(has(9, 22, 'c', 10));
    for (unsigned i = 2; i < WAYS; i++)
        ck_assert(has(i, 22, 'a', 10));
    /* the dead go first */
    put(2, 23, 24, 'd', 10);
    put(8, 30, 100, 'e', 10);
    ck_assert(has(8, 31, 'e', 10));
    ck_assert(has(0, 31, 'b', 10));
    ck_assert(has(3, 31, 'a', 10));
}
END_TEST

/* Sessions are secrets: what is dropped or replaced is nowhere in the memory. */
START_TEST(old_bytes_are_overwritten)
{
    put(1, 10, 100, 'a', SESSION_MOST);
    ck_assert_ptr_nonnull(memmem(memory, TLS_TICKETS_SIZE, "aaaaaaaa", 8));
    put(1, 11, 100, 'b', 10);
    ck_assert_ptr_null(memmem(memory, TLS_TICKETS_SIZE, "aaaaaaaa", 8));
    put(2, 12, 100, 'c', 1000);
    drop(2, 20);
    ck_assert_ptr_null(memmem(memory, TLS_TICKETS_SIZE, "cccccccc", 8));
    ck_assert(has(1, 20, 'b', 10));
}
END_TEST

START_TEST(damage_costs_a_session)
{
    uint8_t *at = memory;
    size_t n = 0;

    put(1, 10, UINT64_MAX, 'a', 100);
    for (size_t i = 0; i < TLS_TICKETS_SIZE; i++) {
        if (memory[i] == 0)
            continue;
        if (n++ == 0)
            at = memory + i - i % 64; /* the slot: its sum comes first */
    }
    for (size_t i = 0; i < 64 + 100; i++) {
        at[i] ^= 0x40;
        ck_assert(has(1, 20, 0, 0));
        at[i] ^= 0x40;
        ck_assert(has(1, 20, 'a', 100));
    }
    /* a slot of no sense is used again */
    for (unsigned i = 0; i < WAYS; i++)
        memset(at + i * (SESSION_MOST + 64), 0xff, SESSION_MOST + 64);
    put(1, 10, 100, 'b', 10);
    ck_assert(has(1, 20, 'b', 10));
}
END_TEST

/* Puts sessions again and again, and reads sessions of all writers. */
static _Noreturn void write_sessions(uint8_t writer)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint8_t i = 0;; i++) {
        uint8_t bytes[SESSION_MOST];
        struct session_found found;
        size_t n;

        put(1, 10, 100, (uint8_t)(4 * i + writer), 1000 + 1000 * writer);
        n = session_table_find(&table, key_of(1), 20, bytes, &found);
        for (size_t j = 1; j < n; j++)
            if (bytes[j] != bytes[0] || n != 1000 + 1000 * (bytes[0] % 4u))
                _exit(1);
    }
}

START_TEST(writers_may_be_killed)
{
    pid_t pids[4];
    int status;

    for (unsigned i = 0; i < 100; i++) {
        pid_t *pid = &pids[i % 4];

        if (i >= 4) {
            for (unsigned j = 0; j < 10 * i; j++)
                has(1, 20, 0, 0);
            kill(*pid, SIGKILL);
            ck_assert_int_eq(waitpid(*pid, &status, 0), *pid);
            ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        *pid = fork();
        ck_assert_int_ne(*pid, -1);
        if (*pid == 0)
            write_sessions((uint8_t)(i % 4));
    }
    for (unsigned i = 0; i < 4; i++) {
        kill(pids[i], SIGKILL);
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    put(1, 10, 100, 'z', 10);
    ck_assert(has(1, 20, 'z', 10));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, sessions_live_their_time);
    tcase_add_test(tcase, a_full_set_forgets_the_oldest);
    tcase_add_test(tcase, old_bytes_are_overwritten);
    tcase_add_test(tcase, damage_costs_a_session);
    tcase_add_test(tcase, writers_may_be_killed);
}

TEST_MAIN("session_table", add_tests)

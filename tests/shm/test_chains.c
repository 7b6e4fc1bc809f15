/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of chains: found once, by the key, the tag and the time of the note. */
#include "shm/shared.h"

#include "support/test.h"

#include <string.h>

#define TAG 7
#define NOW UINT64_C(123456789)

static struct chains chains;

static void begin(void)
{
    memset(&chains, 0, sizeof(chains));
}

START_TEST(a_chain_is_found_once)
{
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG, NOW), 0);
    ck_assert_uint_eq(chains.used, 0);
    shared_put_chain(&chains, 1, TAG, 0x80000001, NOW);
    ck_assert_uint_ne(chains.used, 0);
    shared_put_chain(&chains, 2, TAG, 5, NOW);
    ck_assert_uint_eq(
        shared_take_chain(&chains, 1 + CHAINS_N, TAG, NOW), 0); /* at the same place */
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG, NOW), 0x80000001);
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG, NOW), 0);
    ck_assert_uint_eq(shared_take_chain(&chains, 2, TAG, NOW), 5);
}
END_TEST

START_TEST(a_chain_of_another_configuration_is_none)
{
    shared_put_chain(&chains, 1, TAG, 1, NOW);
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG + 1, NOW), 0);
}
END_TEST

START_TEST(a_chain_grows_old)
{
    static const struct {
        int64_t ms;
        bool found;
    } rows[] = { { -200, true }, { 0, true }, { 1900, true }, { 2200, false }, { -1000, false },
        { 60000, false } };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        shared_put_chain(&chains, 1, TAG, 1, NOW);
        ck_assert_uint_eq(
            shared_take_chain(&chains, 1, TAG, NOW + (uint64_t)rows[i].ms), rows[i].found ? 1 : 0);
    }
}
END_TEST

START_TEST(a_later_chain_takes_the_place)
{
    shared_put_chain(&chains, 1, TAG, 1, NOW);
    shared_put_chain(&chains, 1 + CHAINS_N, TAG, 2, NOW);
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG, NOW), 0);
    ck_assert_uint_eq(shared_take_chain(&chains, 1 + CHAINS_N, TAG, NOW), 2);
}
END_TEST

/* A simultaneous write by a worker, or anything at all, makes an entry without a key. */
START_TEST(half_an_entry_is_none)
{
    shared_put_chain(&chains, 1, TAG, 1, NOW);
    chains.entries[1].value ^= UINT64_C(1) << 40;
    ck_assert_uint_eq(shared_take_chain(&chains, 1, TAG, NOW), 0);
    memset(&chains, 0xff, sizeof(chains));
    for (uint64_t key = 0; key < 1000; key++)
        ck_assert_uint_eq(shared_take_chain(&chains, key, TAG, NOW), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, NULL);
    tcase_add_test(tcase, a_chain_is_found_once);
    tcase_add_test(tcase, a_chain_of_another_configuration_is_none);
    tcase_add_test(tcase, a_chain_grows_old);
    tcase_add_test(tcase, a_later_chain_takes_the_place);
    tcase_add_test(tcase, half_an_entry_is_none);
}

TEST_MAIN("chains", add_tests)

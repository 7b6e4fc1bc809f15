/* SPDX-License-Identifier: BSD-2-Clause */
/* Spare blocks are taken before the source of memory is asked, and no more are kept than it
 * allows. */
#include "base/memory.h"

#include "base/scarce.h"
#include "support/test.h"

#define MOST 3u

START_TEST(what_was_given_back_is_taken_again)
{
    struct scarce scarce;
    struct spares spares;
    void *blocks[2 * MOST];

    scarce_init(&scarce);
    scarce.memory.spares = MOST;
    spares_init(&spares, &scarce.memory, 40);
    for (unsigned i = 0; i < countof(blocks); i++)
        ck_assert_ptr_nonnull(blocks[i] = spares_take(&spares));
    ck_assert_uint_eq(scarce.asked, countof(blocks));
    for (unsigned i = 0; i < countof(blocks); i++) {
        spares_give(&spares, blocks[i]);
        spares_check(&spares);
        ck_assert_uint_eq(spares.n, i < MOST ? i + 1 : MOST);
    }
    for (unsigned i = MOST; i-- > 0;)
        ck_assert_ptr_eq(spares_take(&spares), blocks[i]);
    ck_assert_uint_eq(scarce.asked, countof(blocks));
    for (unsigned i = 0; i < MOST; i++)
        spares_give(&spares, blocks[i]);
    spares_done(&spares);
    ck_assert_uint_eq(spares.n, 0);
}
END_TEST

START_TEST(a_source_may_allow_none)
{
    struct scarce scarce;
    struct spares spares;

    scarce_init(&scarce);
    spares_init(&spares, &scarce.memory, sizeof(void *));
    scarce_restart(&scarce, 2);
    spares_give(&spares, spares_take(&spares));
    ck_assert_uint_eq(spares.n, 0);
    ck_assert_ptr_null(spares_take(&spares));
    spares_done(&spares);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, what_was_given_back_is_taken_again);
    tcase_add_test(tcase, a_source_may_allow_none);
}

TEST_MAIN("spares", add_tests)

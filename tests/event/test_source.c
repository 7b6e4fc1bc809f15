/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of sources: slots are given out, put back and found again by index and generation. */
#include "event/mechanism.h"
#include "event/source.h"
#include "support/test.h"

#include <string.h>

#define SLOTS 5

struct wide {
    struct source source; /* the first member */
    char owners[90];      /* a size that 64 does not divide */
};

START_TEST(slots_are_given_out_once)
{
    struct source_table table;
    struct source *sources[SLOTS];

    ck_assert_int_eq(source_table_init(&table, SLOTS, sizeof(struct wide)), 0);
    for (uint32_t i = 0; i < SLOTS; i++) {
        sources[i] = source_get(&table);
        ck_assert_ptr_nonnull(sources[i]);
        ck_assert_uint_eq(source_index(&table, sources[i]), i);
        ck_assert_ptr_eq(source_at(&table, i), sources[i]);
        ck_assert_uint_eq(table.in_use_n, i + 1);
    }
    ck_assert_ptr_null(source_get(&table));
    ck_assert_ptr_null(source_get(&table));
    for (uint32_t i = 0; i < SLOTS; i++)
        source_put(&table, sources[i]);
    ck_assert_uint_eq(table.in_use_n, 0);
    source_table_done(&table);
    source_table_done(&table); /* harmless */
}
END_TEST

START_TEST(the_latest_to_go_is_the_first_to_come_back)
{
    struct source_table table;
    struct source *sources[SLOTS];

    ck_assert_int_eq(source_table_init(&table, SLOTS, sizeof(struct wide)), 0);
    for (int i = 0; i < 4; i++)
        sources[i] = source_get(&table);
    source_put(&table, sources[1]);
    source_put(&table, sources[3]);
    source_put(&table, sources[0]);
    ck_assert_ptr_eq(source_get(&table), sources[0]); /* the slot whose memory is warm */
    ck_assert_ptr_eq(source_get(&table), sources[3]);
    ck_assert_ptr_eq(source_get(&table), sources[1]);
    ck_assert_uint_eq(table.used_n, 4); /* no new slot before the free slots are used up */
    ck_assert_uint_eq(source_index(&table, source_get(&table)), 4);
    source_table_done(&table);
}
END_TEST

START_TEST(a_slot_comes_back_clean_and_in_a_new_generation)
{
    struct source_table table;
    struct source *source;

    ck_assert_int_eq(source_table_init(&table, 1, sizeof(struct wide)), 0);
    for (uint32_t generation = 0; generation < 3; generation++) {
        struct wide *wide;
        static const char zeros[sizeof(wide->owners)];

        source = _i == 0 ? source_get(&table) : source_get_sized(&table, sizeof(struct wide));
        wide = (struct wide *)source;
        ck_assert_uint_eq(source->generation, generation);
        ck_assert_int_eq(source->fd, -1);
        ck_assert_int_eq(source->queue, QUEUE_NORMAL);
        ck_assert_uint_eq(source->position, 0);
        ck_assert(source->in_use && !source->eof && !source->listening);
        ck_assert_ptr_null(source->ops);
        for (int i = 0; i < EVENT_DIRECTIONS; i++) {
            ck_assert_int_eq(source->events[i].direction, i);
            ck_assert(!source->events[i].ready && !source->events[i].armed);
            ck_assert_ptr_eq(source_of(&source->events[i]), source);
        }
        ck_assert_int_eq(memcmp(wide->owners, zeros, sizeof(zeros)), 0);

        memset(wide->owners, 0xff, sizeof(wide->owners));
        source->eof = source->events[EVENT_WRITE].ready = true;
        source->position = 77;
        source->ops = (const struct source_ops *)zeros;
        source_put(&table, source);
        ck_assert(!source->in_use);
    }
    source_table_done(&table);
}
END_TEST

START_TEST(a_large_table_costs_nothing_until_it_is_used)
{
    struct source_table table;

    ck_assert_int_eq(source_table_init(&table, 16 * 1024 * 1024, 256), 0); /* 4 GB */
    for (int i = 0; i < 100; i++)
        ck_assert_ptr_nonnull(source_get(&table));
    source_table_done(&table);
}
END_TEST

START_TEST(mechanisms_are_found_by_name)
{
    const struct mechanism *best = mechanism_find(NULL), *first = NULL;
    int n = 0;

    ck_assert_ptr_nonnull(best);
    ck_assert(mechanism_available(best));
    ck_assert_ptr_null(mechanism_find("no such"));
    ck_assert_ptr_null(mechanism_find(""));
    for (; mechanism_table[n] != NULL; n++) {
        mechanism_check(mechanism_table[n]);
        ck_assert_ptr_eq(mechanism_find(mechanism_table[n]->name), mechanism_table[n]);
        if (first == NULL && mechanism_available(mechanism_table[n]) &&
            !mechanism_table[n]->by_use_alone)
            first = mechanism_table[n];
    }
    ck_assert_ptr_eq(best, first);
    ck_assert_int_ge(n, 2);
    ck_assert_int_le(n, MECHANISMS_MAX);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, slots_are_given_out_once);
    tcase_add_test(tcase, the_latest_to_go_is_the_first_to_come_back);
    tcase_add_loop_test(tcase, a_slot_comes_back_clean_and_in_a_new_generation, 0, 2);
    tcase_add_test(tcase, a_large_table_costs_nothing_until_it_is_used);
    tcase_add_test(tcase, mechanisms_are_found_by_name);
}

TEST_MAIN("source", add_tests)

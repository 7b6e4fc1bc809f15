/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of servers: the directory of entries, their numbers over workers' deaths, and
 * memory of another master process. */
#include "base/compiler.h"
#include "shm/memory.h"
#include "shm/stats.h"
#include "support/test.h"

#include <string.h>
#include <sys/mman.h>

static const struct stats_shape four = { STATS_OF_LISTENS, 4 };
static const struct stats_key echo = { "echo", "127.0.0.1:7", "" };
static const struct stats_key named = { "echo", "127.0.0.1:7", "a.test" };

static void *create_stats(const struct stats_shape *shape)
{
    void *memory = shared_memory(stats_kind.size(shape));

    ck_assert_int_eq(stats_kind.init(memory, shape), 0);
    return memory;
}

static void destroy_stats(void *memory, const struct stats_shape *shape)
{
    ck_assert_int_eq(munmap(memory, stats_kind.size(shape)), 0);
}

/* Begins a worker in the slot, and returns its numbers of the entry. */
static struct stats *begin_worker(void *memory, uint32_t slot, uint32_t entry)
{
    stats_kind.slot_acquired(memory, &four, (struct slot_id) { slot, 1 });
    return stats_of_slot(memory, slot, entry);
}

static void end_worker(void *memory, uint32_t slot)
{
    stats_kind.slot_released(memory, &four, (struct slot_id) { slot, 1 });
}

static struct stats_totals totals_of(const void *memory, uint32_t entry)
{
    struct stats_totals totals;

    stats_read(memory, entry, &totals, sizeof(totals));
    return totals;
}

START_TEST(entries_are_found_again)
{
    static const struct stats_key other = { "resp", "127.0.0.1:7", "" }, more = { "", "x", "" };
    void *memory = create_stats(&four);

    ck_assert_uint_eq(stats_n(memory), 1);
    ck_assert_uint_eq(stats_enter(memory, &echo), 1);
    ck_assert_uint_eq(stats_enter(memory, &named), 2);
    ck_assert_uint_eq(stats_enter(memory, &other), 3);
    ck_assert_uint_eq(stats_enter(memory, &more), 0); /* no room */
    ck_assert_uint_eq(stats_enter(memory, &echo), 1);
    ck_assert_uint_eq(stats_enter(memory, &named), 2);
    ck_assert_uint_eq(stats_n(memory), 4);
    ck_assert_str_eq(stats_key_of(memory, 2).name, "a.test");
    ck_assert_str_eq(stats_key_of(memory, 3).protocol, "resp");
    destroy_stats(memory, &four);
}
END_TEST

START_TEST(long_texts_are_cut)
{
    void *memory = create_stats(&four);
    char long_text[300], longer[301];
    struct stats_key a = { "p", long_text, "" }, b = { "p", longer, "" };

    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    snprintf(longer, sizeof(longer), "%sa", long_text);
    ck_assert_uint_eq(stats_enter(memory, &a), 1);
    ck_assert_uint_eq(stats_enter(memory, &b), 1);
    ck_assert_uint_lt(strlen(stats_key_of(memory, 1).address), sizeof(long_text) - 1);
    destroy_stats(memory, &four);
}
END_TEST

START_TEST(a_dead_worker_has_no_clients)
{
    void *memory = create_stats(&four);
    uint32_t entry = stats_enter(memory, &echo);
    struct stats *first = begin_worker(memory, 0, entry), *second = begin_worker(memory, 5, entry);
    struct stats_totals totals;

    for (int i = 0; i < 5; i++)
        stats_add(&first->accepts, 1);
    stats_add(&first->traffic.received, 100);
    stats_add_end(&first->ended[7]);
    stats_add_end(&first->ended[STATS_END_MOVED]);
    stats_add_time(&first->lengths, 1000);
    stats_add(&second->accepts, 2);
    totals = totals_of(memory, entry);
    ck_assert_uint_eq(totals.accepts, 7);
    ck_assert_uint_eq(totals.active, 5);
    for (int i = 0; i < 2; i++) { /* once for each of two zones with the memory */
        end_worker(memory, 0);
        totals = totals_of(memory, entry);
        ck_assert_uint_eq(totals.accepts, 7);
        ck_assert_uint_eq(totals.active, 2);
        ck_assert_uint_eq(totals.received, 100);
        ck_assert_uint_eq(totals.ended[7], 1);
        ck_assert_uint_eq(totals.ended[STATS_END_DIED], 3);
        ck_assert_uint_eq(totals.lengths.ms, 1000);
        ck_assert_uint_eq(totals.lengths.n[10], 1);
    }
    ck_assert_uint_eq(atomic_load(&first->accepts), 0); /* for the slot's next worker */
    destroy_stats(memory, &four);
}
END_TEST

START_TEST(entries_of_later_configurations_are_folded_too)
{
    void *memory = create_stats(&four);
    struct stats *numbers = begin_worker(memory, 0, stats_enter(memory, &echo));

    stats_add(&numbers->accepts, 1);
    ck_assert_uint_eq(stats_enter(memory, &named), 2);
    numbers = stats_of_slot(memory, 0, 2);
    stats_add(&numbers->accepts, 1);
    stats_add(&((struct stats *)stats_of_slot(memory, 0, 0))->accepts, 1); /* without an entry */
    end_worker(memory, 0);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(totals_of(memory, i).ended[STATS_END_DIED], 1);
    destroy_stats(memory, &four);
}
END_TEST

START_TEST(a_dead_worker_has_no_tries)
{
    static const struct stats_shape shape = { STATS_OF_TRIES, 4 };
    static const struct stats_key key = { "", "127.0.0.1:80", "group" };
    void *memory = create_stats(&shape);
    uint32_t entry = stats_enter(memory, &key);
    struct stats_tries_totals totals;
    struct stats_tries *tries;

    stats_kind.slot_acquired(memory, &shape, (struct slot_id) { 3, 1 });
    tries = stats_of_slot(memory, 3, entry);
    stats_add(&tries->begun, 3);
    stats_add(&tries->troubles[2], 1);
    stats_add_time(&tries->times[2], 5);
    stats_add_end(&tries->ended[1]);
    ck_assert_uint_eq(stats_sum_active(memory), 2);
    stats_kind.slot_released(memory, &shape, (struct slot_id) { 3, 1 });
    stats_read(memory, entry, &totals, sizeof(totals));
    ck_assert_uint_eq(totals.begun, 3);
    ck_assert_uint_eq(totals.ended[1], 1);
    ck_assert_uint_eq(totals.ended[STATS_TRY_ENDS - 1], 2);
    ck_assert_uint_eq(totals.troubles[2], 1);
    ck_assert_uint_eq(totals.times[2].ms, 5);
    ck_assert_uint_eq(totals.times[2].n[3], 1);
    ck_assert_uint_eq(totals.active + stats_sum_active(memory), 0);
    destroy_stats(memory, &shape);
}
END_TEST

/* A worker may write anything in its own numbers. */
START_TEST(nonsense_of_a_worker)
{
    void *memory = create_stats(&four);
    struct stats *numbers = begin_worker(memory, 0, 1), *other;

    stats_enter(memory, &echo);
    memset((void *)numbers, 0xff, sizeof(*numbers));
    totals_of(memory, 1);
    atomic_store(&numbers->accepts, 0);
    for (unsigned i = 0; i < STATS_ENDS; i++)
        atomic_store(&numbers->ended[i], 1);
    ck_assert_uint_eq(totals_of(memory, 1).active, 0);
    end_worker(memory, 0);
    other = begin_worker(memory, 0, 1);
    stats_add(&other->accepts, 1);
    ck_assert_uint_eq(totals_of(memory, 1).active, 1);
    destroy_stats(memory, &four);
}
END_TEST

START_TEST(times_have_powers_of_two)
{
    static const struct {
        uint64_t ms;
        unsigned bucket;
    } lengths[] = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 },
        { (UINT64_C(1) << 26) - 1, 26 }, { UINT64_C(1) << 26, 27 }, { UINT64_MAX, 27 } };

    for (size_t i = 0; i < countof(lengths); i++) {
        struct stats_times times = { 0 };

        stats_add_time(&times, lengths[i].ms);
        ck_assert_uint_eq(atomic_load(&times.n[lengths[i].bucket]), 1);
    }
}
END_TEST

START_TEST(memory_of_another_capacity_fits)
{
    static const struct stats_shape many = { STATS_OF_LISTENS, STATS_ENTRIES_MOST },
                                    none = { STATS_OF_LISTENS, 1 },
                                    too_many = { STATS_OF_LISTENS, STATS_ENTRIES_MOST + 1 },
                                    too_many_tries = { STATS_OF_TRIES, STATS_ENTRIES_MOST },
                                    tries = { STATS_OF_TRIES, 4 };
    struct stats_shape shape = many;
    void *memory = create_stats(&four);
    size_t size = stats_kind.size(&four);

    ck_assert_uint_eq(stats_kind.size(&none), 0);
    ck_assert_uint_eq(stats_kind.size(&too_many), 0);
    ck_assert_uint_eq(stats_kind.size(&too_many_tries), 0);
    ck_assert(stats_kind.fits(memory, size, &many));
    ck_assert(!stats_kind.fits(memory, size + segment_page(), &four));
    ck_assert(!stats_kind.fits(memory, 4, &four));
    ck_assert(!stats_kind.fits(memory, size, &tries));
    stats_open(memory, &shape);
    ck_assert_uint_eq(shape.capacity, 4);
    destroy_stats(memory, &four);
}
END_TEST

/* Another master process may have written anything. */
START_TEST(damaged_memory_is_refused)
{
    void *memory = create_stats(&four);
    size_t size = stats_kind.size(&four);
    uint32_t *words = memory;

    ck_assert_uint_eq(stats_enter(memory, &echo), 1);
    for (int i = 0; i < 5; i++) { /* magic, revision, kind, capacity, entries */
        uint32_t before = words[i];

        words[i] = UINT32_MAX;
        ck_assert(!stats_kind.fits(memory, size, &four));
        words[i] = i == 2 ? STATS_OF_TRIES : 0;
        ck_assert(!stats_kind.fits(memory, size, &four));
        words[i] = before;
        ck_assert(stats_kind.is(memory, &four));
    }
    memset((char *)(uintptr_t)stats_key_of(memory, 1).address, 'a', 300);
    ck_assert(!stats_kind.fits(memory, size, &four));
    destroy_stats(memory, &four);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, entries_are_found_again);
    tcase_add_test(tcase, long_texts_are_cut);
    tcase_add_test(tcase, a_dead_worker_has_no_clients);
    tcase_add_test(tcase, entries_of_later_configurations_are_folded_too);
    tcase_add_test(tcase, a_dead_worker_has_no_tries);
    tcase_add_test(tcase, nonsense_of_a_worker);
    tcase_add_test(tcase, times_have_powers_of_two);
    tcase_add_test(tcase, memory_of_another_capacity_fits);
    tcase_add_test(tcase, damaged_memory_is_refused);
}

TEST_MAIN("shm_stats", add_tests)

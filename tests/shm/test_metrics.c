/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters and gauges: totals over all workers, rows of dead ones folded in, and never less than
 * was told. */
#include "base/compiler.h"
#include "shm/memory.h"
#include "shm/metrics.h"
#include "support/test.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FOLDS 100000
#define COUNTED 3       /* between two folds */
#define STEPS_MOST 5000 /* counted before a kill */
#define KILLS 100

static const uint8_t kinds[] = { SHM_COUNTER, SHM_GAUGE, SHM_COUNTER };
static const struct shm_metrics_shape three = { countof(kinds), kinds };

static struct shm_metrics *create_metrics(const struct shm_metrics_shape *shape)
{
    struct shm_metrics *metrics = shared_memory(shm_metrics_kind.size(shape));

    shm_metrics_kind.init(metrics, shape);
    return metrics;
}

static void fold(struct shm_metrics *metrics, const struct shm_metrics_shape *shape, uint32_t slot)
{
    shm_metrics_kind.slot_released(metrics, shape, (struct slot_id) { slot, 1 });
}

/* Takes a worker's row into the totals, and returns the row. */
static shm_row *take_row(struct shm_metrics *metrics, uint32_t slot)
{
    shm_metrics_kind.slot_acquired(metrics, &three, (struct slot_id) { slot, 1 });
    return shm_metrics_row(metrics, &three, slot);
}

static void destroy_metrics(struct shm_metrics *metrics, const struct shm_metrics_shape *shape)
{
    ck_assert_int_eq(munmap(metrics, shm_metrics_kind.size(shape)), 0);
}

static void metrics_totals(
    const struct shm_metrics *metrics, const struct shm_metrics_shape *shape, int64_t *totals)
{
    for (uint32_t i = 0; i < shape->n; i++)
        totals[i] = shm_metrics_total(metrics, shape, i);
}

static void expect_total(const struct shm_metrics *metrics, int64_t a, int64_t b, int64_t c)
{
    int64_t totals[countof(kinds)];

    metrics_totals(metrics, &three, totals);
    ck_assert_int_eq(totals[0], a);
    ck_assert_int_eq(totals[1], b);
    ck_assert_int_eq(totals[2], c);
}

START_TEST(some_shapes_cannot_be)
{
    static const uint8_t wrong[] = { SHM_COUNTER, 2 };
    static const uint8_t many[SHM_METRICS_MAX + 1];
    static const struct {
        struct shm_metrics_shape shape;
        bool can_be;
    } shapes[] = {
        { { 0, kinds }, false },
        { { 1, kinds }, true },
        { { 2, wrong }, false },
        { { SHM_METRICS_MAX, many }, true },
        { { SHM_METRICS_MAX + 1, many }, false },
    };

    for (size_t i = 0; i < countof(shapes); i++)
        ck_assert_int_eq(shm_metrics_kind.size(&shapes[i].shape) != 0, shapes[i].can_be);
}
END_TEST

START_TEST(it_knows_its_shape)
{
    static const uint8_t others[] = { SHM_COUNTER, SHM_GAUGE, SHM_GAUGE, SHM_GAUGE };
    struct shm_metrics *metrics = create_metrics(&three);

    ck_assert(shm_metrics_kind.is(metrics, &three));
    ck_assert(!shm_metrics_kind.is(metrics, &(struct shm_metrics_shape) { 2, kinds }));
    ck_assert(!shm_metrics_kind.is(metrics, &(struct shm_metrics_shape) { 3, others }));
    ck_assert(!shm_metrics_kind.is(metrics, &(struct shm_metrics_shape) { 4, others }));
    destroy_metrics(metrics, &three);
}
END_TEST

START_TEST(totals_are_over_all_slots)
{
    struct shm_metrics *metrics = create_metrics(&three);
    shm_row *first = take_row(metrics, 0);
    shm_row *last = take_row(metrics, SLOT_MAX - 1);
    shm_row *middle = take_row(metrics, 500);

    expect_total(metrics, 0, 0, 0);
    shm_metric_add(&first[0], 1);
    shm_metric_add(&middle[0], 20);
    shm_metric_add(&last[0], 300);
    shm_metric_add(&first[1], -4);
    shm_metric_set(&last[1], 9);
    shm_metric_add(&last[2], INT64_MAX);
    expect_total(metrics, 321, 5, INT64_MAX);
    ck_assert_ptr_eq(take_row(metrics, 500), middle);
    destroy_metrics(metrics, &three);
}
END_TEST

START_TEST(rows_lie_on_pages_of_their_own)
{
    static const uint8_t many[600];
    size_t page = segment_page();

    for (uint32_t n = 1; n <= countof(many); n += 7) {
        const struct shm_metrics_shape shape = { n, many };
        struct shm_metrics *metrics = create_metrics(&shape);
        uintptr_t a = (uintptr_t)shm_metrics_row(metrics, &shape, 0);
        uintptr_t b = (uintptr_t)shm_metrics_row(metrics, &shape, 1);
        uintptr_t last = (uintptr_t)shm_metrics_row(metrics, &shape, 2 * SLOT_MAX - 1);
        struct segment_part part = shm_metrics_kind.writable(&shape, 1);

        ck_assert_uint_eq(a % page, 0);
        ck_assert_uint_ge(a, (uintptr_t)metrics + page);
        ck_assert_uint_ge(b - a, n * sizeof(int64_t));
        ck_assert_uint_eq((b - a) % page, 0);
        ck_assert_uint_le(
            last + n * sizeof(int64_t), (uintptr_t)metrics + shm_metrics_kind.size(&shape));
        ck_assert_uint_eq((uintptr_t)metrics + part.offset, b);
        ck_assert_uint_eq(part.size, b - a);
        destroy_metrics(metrics, &shape);
    }
}
END_TEST

START_TEST(the_dead_leave_their_counters_but_not_their_gauges)
{
    struct shm_metrics *metrics = create_metrics(&three);
    shm_row *dead = take_row(metrics, 2), *living = take_row(metrics, 3);

    for (uint32_t i = 0; i < 3; i++) {
        shm_metric_add(&dead[i], 10);
        shm_metric_add(&living[i], 1);
    }
    expect_total(metrics, 11, 11, 11);
    fold(metrics, &three, 2);
    expect_total(metrics, 11, 1, 11);
    fold(metrics, &three, 2); /* by way of a second zone of the same memory */
    expect_total(metrics, 11, 1, 11);
    shm_metric_add(&dead[0], 100); /* the slot's next life */
    expect_total(metrics, 111, 1, 11);
    fold(metrics, &three, 2);
    fold(metrics, &three, 3);
    fold(metrics, &three, 4); /* no row was taken */
    fold(metrics, &three, SLOT_MAX - 1);
    expect_total(metrics, 111, 0, 11);
    destroy_metrics(metrics, &three);
}
END_TEST

/* Two master processes side by side: both fold the rows of their own workers. */
START_TEST(sides_are_told_apart)
{
    struct shm_metrics *metrics = create_metrics(&three);
    shm_row *a = take_row(metrics, 5), *b = take_row(metrics, SLOT_MAX + 5);
    shm_row *last = take_row(metrics, SLOT_HALVES * SLOT_MAX - 1);

    ck_assert_uint_le(
        (uintptr_t)last + 3 * sizeof(int64_t), (uintptr_t)metrics + shm_metrics_kind.size(&three));
    for (uint32_t i = 0; i < 3; i++) {
        shm_metric_add(&a[i], 1);
        shm_metric_add(&b[i], 10);
        shm_metric_add(&last[i], 100);
    }
    expect_total(metrics, 111, 111, 111);
    fold(metrics, &three, SLOT_MAX + 5);
    expect_total(metrics, 111, 101, 111);
    fold(metrics, &three, 5);
    expect_total(metrics, 111, 100, 111);
    shm_metric_add(&b[0], 1000);
    fold(metrics, &three, SLOT_HALVES * SLOT_MAX - 1);
    fold(metrics, &three, SLOT_MAX + 5);
    expect_total(metrics, 1111, 0, 111);
    destroy_metrics(metrics, &three);
}
END_TEST

START_TEST(rows_are_touched_as_they_are_taken)
{
    struct shm_metrics *metrics = create_metrics(&three);
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = shm_metrics_kind.size(&three), touched = 0;
    unsigned char *in_core = malloc(size / page);

    ck_assert_ptr_nonnull(in_core);
    shm_metric_add(take_row(metrics, 1), 1);
    fold(metrics, &three, SLOT_MAX - 1);
    expect_total(metrics, 1, 0, 0);
    ck_assert_int_eq(mincore(metrics, size, in_core), 0);
    for (size_t i = 0; i < size / page; i++)
        touched += in_core[i] & 1;
    ck_assert_uint_eq(touched, 4); /* the header, a row of the dead, and of slots 0 and 1 */
    free(in_core);
    destroy_metrics(metrics, &three);
}
END_TEST

/* The sum given to a counter; the total is never less nor more. */
struct told {
    _Atomic int64_t begun, done;
    _Atomic bool read;
};

static int64_t check_total(const struct shm_metrics *metrics, const struct told *told)
{
    int64_t totals[countof(kinds)], least = told->done;

    metrics_totals(metrics, &three, totals);
    return totals[0] < least || totals[0] > told->begun ? -1 : totals[0];
}

static void count_and_fold(struct shm_metrics *metrics, struct told *told, uint32_t slot)
{
    shm_row *row = take_row(metrics, slot);

    for (int i = 0; i < COUNTED; i++) {
        told->begun++;
        shm_metric_add(&row[0], 1);
        told->done++;
    }
    fold(metrics, &three, slot);
}

static void read_on(const struct shm_metrics *metrics, struct told *told)
{
    int64_t total;

    do {
        total = check_total(metrics, told);
        if (total == -1)
            _exit(1);
        told->read = true;
    } while (total < FOLDS * COUNTED);
    _exit(0);
}

START_TEST(totals_are_right_while_the_master_folds)
{
    struct shm_metrics *metrics = create_metrics(&three);
    struct told *told = shared_memory(sizeof(*told));
    pid_t pid = fork_child();

    if (pid == 0)
        read_on(metrics, told);
    while (!told->read)
        sched_yield();
    for (uint32_t i = 0; i < FOLDS; i++)
        count_and_fold(metrics, told, i % 8);
    wait_for_child(pid);
    expect_total(metrics, FOLDS * COUNTED, 0, 0);
    destroy_metrics(metrics, &three);
}
END_TEST

START_TEST(a_master_that_dies_while_folding_loses_nothing)
{
    struct shm_metrics *metrics = create_metrics(&three);
    struct told *told = shared_memory(sizeof(*told));
    uint64_t random = 1;
    int64_t total = 0, first = 0;

    for (int i = 0; i < KILLS; i++) {
        int64_t until = told->done + (int64_t)random_below(&random, STEPS_MOST);
        time_t deadline = time(NULL) + TEST_PATIENCE_MS / 1000;
        pid_t pid = fork_child();

        if (pid == 0)
            for (uint32_t slot = 0;; slot = (slot + 1) % 3)
                count_and_fold(metrics, told, slot);
        while (told->done < until) {
            ck_assert_msg(time(NULL) < deadline, "the child counts nothing");
            sched_yield();
        }
        kill_child(pid);
        total = check_total(metrics, told);
        ck_assert_int_ge(total, 0);
        for (uint32_t slot = 0; slot < 3; slot++)
            fold(metrics, &three, slot);
        expect_total(metrics, total, 0, 0);
        told->begun = told->done = total;
        first = first == 0 ? total : first;
    }
    ck_assert_int_gt(total, first);
    destroy_metrics(metrics, &three);
}
END_TEST

/* The header decides nothing: sizes, kinds and offsets are the shape's, and a master's values are
 * bounded. */
START_TEST(a_spoiled_header_leads_nowhere_else)
{
    size_t size = shm_metrics_kind.size(&three), header = 64;
    struct shm_metrics *metrics = create_metrics(&three);
    uint32_t *words = (uint32_t *)metrics;
    int64_t totals[countof(kinds)];

    for (size_t i = 0; i < header / sizeof(words[0]); i++)
        for (uint32_t slot = 0; slot < 2; slot++) {
            memset(metrics, 0, size);
            shm_metrics_kind.init(metrics, &three);
            shm_metric_add(&take_row(metrics, slot)[0], 1);
            words[i] = 0x7fffffff;
            shm_metrics_kind.slot_released(metrics, &three, (struct slot_id) { slot, 1 });
            metrics_totals(metrics, &three, totals);
        }
    destroy_metrics(metrics, &three);
}
END_TEST

/* Several workers come, each with a row, and only the counts stay. */
START_TEST(workers_count_side_by_side)
{
    struct shm_metrics *metrics = create_metrics(&three);
    pid_t pids[4];

    for (uint32_t w = 0; w < 4; w++) {
        pids[w] = fork_child();
        if (pids[w] == 0) {
            shm_row *row = take_row(metrics, w);

            for (int i = 0; i < 10000; i++) {
                shm_metric_add(&row[0], 1);
                shm_metric_add(&row[1], i % 2 == 0 ? 1 : -1);
                shm_metric_add(&row[2], w);
            }
            shm_metric_add(&row[1], 7);
            _exit(0);
        }
    }
    for (uint32_t w = 0; w < 4; w++)
        wait_for_child(pids[w]);
    expect_total(metrics, 40000, 28, 60000);
    for (uint32_t w = 0; w < 4; w++)
        fold(metrics, &three, w);
    expect_total(metrics, 40000, 0, 60000);
    destroy_metrics(metrics, &three);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, some_shapes_cannot_be);
    tcase_add_test(tcase, it_knows_its_shape);
    tcase_add_test(tcase, totals_are_over_all_slots);
    tcase_add_test(tcase, rows_lie_on_pages_of_their_own);
    tcase_add_test(tcase, the_dead_leave_their_counters_but_not_their_gauges);
    tcase_add_test(tcase, sides_are_told_apart);
    tcase_add_test(tcase, rows_are_touched_as_they_are_taken);
    tcase_add_test(tcase, totals_are_right_while_the_master_folds);
    tcase_add_test(tcase, a_master_that_dies_while_folding_loses_nothing);
    tcase_add_test(tcase, a_spoiled_header_leads_nowhere_else);
    tcase_add_test(tcase, workers_count_side_by_side);
}

TEST_MAIN("metrics", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Without memory a connection ends, not the process. The linker is told to have the allocations of
 * conn_input.c and conn_output.c come here (--wrap). */
#include "net/bed.h"
#include "net/chunk.h"

#include <limits.h>

#define NEVER UINT_MAX

static unsigned until_failure = NEVER; /* allocations that still succeed */

struct chunk *__real_chunk_create(struct chunk_pool *pool, size_t room);
struct chunk *__wrap_chunk_create(struct chunk_pool *pool, size_t room);
struct chunk *__real_chunk_create_foreign(
    struct chunk_pool *pool, enum chunk_kind kind, const uint8_t *p, size_t n);
struct chunk *__wrap_chunk_create_foreign(
    struct chunk_pool *pool, enum chunk_kind kind, const uint8_t *p, size_t n);

/* One failure, and no more after it. */
static bool fails(void)
{
    if (until_failure == NEVER)
        return false;
    return until_failure-- == 0;
}

struct chunk *__wrap_chunk_create(struct chunk_pool *pool, size_t room)
{
    return fails() ? NULL : __real_chunk_create(pool, room);
}

struct chunk *__wrap_chunk_create_foreign(
    struct chunk_pool *pool, enum chunk_kind kind, const uint8_t *p, size_t n)
{
    return fails() ? NULL : __real_chunk_create_foreign(pool, kind, p, n);
}

static bool has_failed(void)
{
    bool failed = until_failure == NEVER;

    until_failure = NEVER;
    return failed;
}

static uint8_t bytes[20000];

static size_t write_to_other(struct owner *owner, fb_bytes in)
{
    if (owner->other->conn != NULL) {
        conn_write(owner->other->conn, in.p, in.n); /* borrowed */
        conn_write(owner->other->conn, bytes, sizeof(bytes));
        conn_write(owner->other->conn, in.p, 1);
    }
    return in.n / 2;
}

/* Input that is kept, grows and is moved; output that is copied, borrowed and taken over. */
static void exercise(struct bed *bed, struct owner *owners[3])
{
    owners[0]->data = bed_leave;
    owners[1]->data = write_to_other;
    owners[1]->other = owners[2];
    fake_take(owners[2]->socket, 10);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            fake_say(owners[j]->socket, bytes, 5000);
            bed_run(bed);
        }
    fake_take(owners[2]->socket, SIZE_MAX);
    bed_run(bed);
}

/* Says whether an allocation has failed. */
static bool exercise_with(const struct mechanism *mechanism, unsigned failing)
{
    struct bed *bed = bed_set_up(mechanism, 3);
    struct owner *owners[3];
    unsigned without_memory = 0;
    bool failed;

    for (int i = 0; i < 3; i++)
        owners[i] = bed_open(bed);
    until_failure = failing;
    exercise(bed, owners);
    failed = has_failed();
    net_fail_all(&bed->net, FB_DRAINED);
    for (int i = 0; i < 3; i++) {
        without_memory += owners[i]->reason == FB_NO_MEMORY;
        ck_assert(owners[i]->reason == FB_NO_MEMORY || owners[i]->reason == FB_DRAINED);
        bed_free(&owners[i]);
    }
    ck_assert_msg(without_memory == failed, "%u connections ended for the failure of allocation %u",
        without_memory, failing);
    bed_tear_down(bed);
    return failed;
}

START_TEST(the_connection_ends_that_lacks_memory)
{
    unsigned n = 0;

    while (exercise_with(bed_mechanisms[_i], n))
        n++;
    ck_assert_uint_gt(n, 5);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_connection_ends_that_lacks_memory, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_memory", add_tests)

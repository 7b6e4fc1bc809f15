/* SPDX-License-Identifier: BSD-2-Clause */
/* Without memory a connection ends, not the process. */
#include "support/owner.h"

#include <limits.h>

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

/* Input kept, grown and moved; output copied, borrowed and taken over. */
static void exercise_memory(struct fixture *fixture, struct owner *owners[3])
{
    owners[0]->data = owner_leave_input;
    owners[1]->data = write_to_other;
    owners[1]->other = owners[2];
    sim_set_room(owners[2]->socket, 10);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            sim_say(owners[j]->socket, bytes, 5000);
            fixture_run(fixture);
        }
    sim_set_room(owners[2]->socket, SIZE_MAX);
    fixture_run(fixture);
}

/* Says whether an allocation has failed. */
static bool exercise_with(enum fixture_events events, unsigned failing)
{
    struct fixture *fixture = fixture_start_net(events, 3);
    struct owner *owners[3];
    unsigned without_memory = 0;
    bool failed;

    for (int i = 0; i < 3; i++)
        owners[i] = owner_open(fixture);
    fixture->memory.until_failure = failing;
    fixture->memory.failures_max = 1;
    exercise_memory(fixture, owners);
    failed = fixture->memory.failures > 0;
    fixture->memory.until_failure = UINT_MAX;
    fixture_end_all(fixture);
    for (int i = 0; i < 3; i++) {
        without_memory += owners[i]->reason == FB_NO_MEMORY;
        ck_assert(owners[i]->reason == FB_NO_MEMORY || owners[i]->reason == FB_DRAINED);
        owner_free(&owners[i]);
    }
    ck_assert_msg(without_memory == failed, "%u connections ended for the failure of allocation %u",
        without_memory, failing);
    fixture_stop(fixture);
    return failed;
}

START_TEST(the_connection_ends_that_lacks_memory)
{
    unsigned n = 0;

    while (exercise_with(_i, n))
        n++;
    ck_assert_uint_gt(n, 5);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_connection_ends_that_lacks_memory, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_memory", add_tests)

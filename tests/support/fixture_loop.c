/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of the event loop. */
#include "support/fixture.h"
#include "support/watched.h"

static void stop_loop(struct fixture *fixture)
{
    for (int i = 0; i < QUEUES; i++)
        ck_assert(loop_is_empty(fixture->loop, i));
    loop_done(fixture->loop);
}

struct fixture *fixture_start_loop_with(struct sim *sim, const struct loop_options *options)
{
    struct fixture *fixture = fixture_create(sim);
    struct loop_options own = *options;

    if (own.mechanism == NULL)
        own.mechanism = fixture_mechanism(fixture, FIXTURE_EDGE);
    own.stride = sizeof(struct watched);
    own.log = &fixture->log.log;
    ck_assert_int_eq(loop_init(fixture->loop, &own), 0);
    fixture->stop_parts = stop_loop;
    return fixture;
}

struct fixture *fixture_start_loop(uint32_t sources)
{
    const struct loop_options options = { .slots = sources };

    return fixture_start_loop_with(NULL, &options);
}

struct fixture *fixture_start_loop_beside(
    struct fixture *other, enum fixture_events events, uint32_t sources)
{
    const struct loop_options options = {
        .mechanism = fixture_mechanism(other, events),
        .slots = sources,
    };

    return fixture_start_loop_with(other->sim, &options);
}

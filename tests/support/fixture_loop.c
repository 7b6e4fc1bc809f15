/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of the event loop. */
#include "support/fixture.h"
#include "support/watched.h"

static void stop_loop(struct fixture *fixture)
{
    fb_loop_done(fixture->loop);
}

static struct fixture *start_loop(
    struct fixture *fixture, enum fixture_events events, uint32_t sources)
{
    struct fb_loop_options options = {
        .mechanism = fixture_mechanism(fixture, events),
        .slots = sources,
        .stride = sizeof(struct watched),
        .log = &fixture->log.log,
    };

    ck_assert_int_eq(fb_loop_init(fixture->loop, &options), 0);
    fixture->stop_parts = stop_loop;
    return fixture;
}

struct fixture *fixture_start_loop(uint32_t sources)
{
    return start_loop(fixture_create(NULL), FIXTURE_EDGE, sources);
}

struct fixture *fixture_start_loop_beside(
    struct fixture *other, enum fixture_events events, uint32_t sources)
{
    return start_loop(fixture_create(other->sim), events, sources);
}

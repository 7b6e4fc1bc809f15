/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of sessions. */
#include "backends/connect.h"
#include "support/fixture.h"
#include "support/server_defaults.h"

static void stop_stream(struct fixture *fixture)
{
    ck_assert_uint_eq(fixture->server.record.openings, fixture->server.record.closings);
    fixture_check_gauges(fixture);
    stream_done(fixture->stream);
    ck_assert_uint_eq(fixture->memory.blocks, 0);
    shared_destroy(&fixture->shared);
    arena_destroy(&fixture->defaults);
}

static struct fixture *start_stream(
    struct fixture *fixture, const struct mechanism *mechanism, uint32_t connections)
{
    struct net_options options;

    fixture->sim->auto_time = true;
    fixture->shared = shared_create(false);
    ck_assert_ptr_nonnull(fixture->shared);
    ck_assert(slot_acquire(fixture->shared, &fixture->slot));
    fixture->counters = &shared_slot(fixture->shared, fixture->slot)->counters;
    fixture->stream = &fixture->parts.stream;
    fixture->net = &fixture->stream->net;
    options = fixture_net_options(fixture, mechanism, connections);
    ck_assert_int_eq(
        stream_init(fixture->stream, &options, fixture->shared, &backends_ops, NULL, 0), 0);
    scripted_server_init(&fixture->server, "192.0.2.7:77");
    fixture->parts.protocols[fixture->server.server.protocol_index].worker = &fixture->parts;
    fixture->defaults = server_defaults(&fixture->server.server);
    fixture->stop_parts = stop_stream;
    return fixture;
}

struct fixture *fixture_start_stream(uint32_t connections)
{
    struct fixture *fixture = fixture_create(NULL);

    return start_stream(fixture, &fixture->sim->edge, connections);
}

struct fixture *fixture_start_stream_on(const struct mechanism *mechanism, uint32_t connections)
{
    struct fixture *fixture = fixture_create(NULL);

    fixture->simulated = false;
    return start_stream(fixture, mechanism, connections);
}

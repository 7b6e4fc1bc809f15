/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture's level of connections. */
#include "support/fixture.h"

static void count_released(struct net *net)
{
    fixture_of(&net->loop)->released++;
}

static void stop_net(struct fixture *fixture)
{
    ck_assert_uint_eq(fixture->net->connection_n, 0);
    fixture_check_gauges(fixture);
    ck_assert_uint_eq(fixture_blocks_held(fixture), 0);
    net_done(fixture->net);
    ck_assert_uint_eq(fixture->memory.blocks, 0);
}

static struct fixture *start_net(
    struct fixture *fixture, const struct mechanism *mechanism, uint32_t connections)
{
    struct net_options options = fixture_net_options(fixture, mechanism, connections);

    fixture->sim->auto_time = true;
    fixture->net = &fixture->parts.stream.net;
    ck_assert_int_eq(net_init(fixture->net, &options), 0);
    fixture->net->released = count_released;
    fixture->stop_parts = stop_net;
    return fixture;
}

struct fixture *fixture_start_net(enum fixture_events events, uint32_t connections)
{
    struct fixture *fixture = fixture_create(NULL);

    return start_net(fixture, fixture_mechanism(fixture, events), connections);
}

struct fixture *fixture_start_net_on(const struct mechanism *mechanism, uint32_t connections)
{
    struct fixture *fixture = fixture_create(NULL);

    fixture->simulated = false;
    return start_net(fixture, mechanism, connections);
}

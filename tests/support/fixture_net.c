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

struct fixture *fixture_start_net(enum fixture_events events, uint32_t connections)
{
    struct fixture *fixture = fixture_create(NULL);
    struct net_options options =
        fixture_net_options(fixture, fixture_mechanism(fixture, events), connections);

    fixture->sim->auto_time = true;
    fixture->net = &fixture->parts.stream.net;
    ck_assert_int_eq(net_init(fixture->net, &options), 0);
    fixture->net->released = count_released;
    fixture->stop_parts = stop_net;
    return fixture;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Random configurations of the servers of session/ways.h, and random acts of their protocols. */
#pragma once

#include "features/preread/preread.h"
#include "session/ways.h"
#include "support/random.h"

static uint64_t state; /* the test's number at first */

static inline uint32_t any_below(uint32_t n)
{
    return random_below(&state, n);
}

/* Acts in `opened`; returns what the callback is to return. */
static inline int act_on_opened(fb_conn *conn, void *state_of)
{
    if (any_below(4) == 0)
        fb_set_idle(conn, 1);
    if (any_below(8) == 0)
        fb_stop(conn);
    if (any_below(8) == 0)
        fb_set_timeout(conn, 1 + any_below(5000));
    if (any_below(16) == 0)
        fb_close(conn);
    if (test.servers[0]->server.passes && any_below(4) != 0)
        pass(conn, state_of);
    return any_below(16) == 0;
}

/* Configure what stands before, and behind, further handlers of phases. */
static inline void configure_begin(unsigned i)
{
    if (any_below(2) == 0)
        set_times(&test.servers[i]->server, any_below(2) == 0);
    if (any_below(2) == 0)
        add_limit(i, 1 + any_below(CLIENTS));
}

static inline void configure_end(unsigned i)
{
    struct server *server = &test.servers[i]->server;

    if (any_below(3) == 0) {
        struct preread_values *values = server_feature(server, FEATURE_PREREAD);

        values->timeout = 1 + any_below(5000);
        values->buffer_size = 1 + any_below(200);
        add_before(i, PHASE_PREREAD, preread_begin, NULL);
    }
    server->settings.first_byte_timeout = any_below(2) * 3000;
}

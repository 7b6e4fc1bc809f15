/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners that echo at random, and random acts on their connections and on the sockets of the peers:
 * of the plain connection and of the layer alike. */
#pragma once

#include "support/owner.h"
#include "support/random.h"

#include <string.h>

static uint64_t state; /* the test's number at first */

static inline uint32_t any_below(uint32_t n)
{
    return random_below(&state, n);
}

static inline bool one_in(uint32_t n)
{
    return any_below(n) == 0;
}

/* Echoes a part, copied or borrowed, in one write or many. */
static inline size_t echo_some(struct owner *owner, fb_bytes in)
{
    size_t used = one_in(4) ? any_below((uint32_t)in.n + 1) : in.n;
    size_t step = 1 + any_below((uint32_t)used + 1);
    uint8_t copy[512];

    if (used / step > 2000)
        step = used;
    for (size_t at = 0; at < used; at += step) {
        size_t n = step < used - at ? step : used - at;

        if (n < sizeof(copy) && one_in(2))
            conn_write(owner->conn, memcpy(copy, in.p + at, n), n);
        else
            conn_write(owner->conn, in.p + at, n);
    }
    if (one_in(8))
        conn_stop(owner->conn);
    if (one_in(8))
        conn_resume(owner->conn);
    if (one_in(8))
        conn_push(owner->conn);
    return used;
}

static inline void echo_rest(struct owner *owner, fb_bytes rest)
{
    conn_write(owner->conn, rest.p, rest.n);
    conn_close(owner->conn);
}

static inline struct owner *create_echoing(struct fixture *fixture)
{
    static const struct owner echoing = { .data = echo_some, .eof = echo_rest };
    struct owner *owner = owner_create(fixture, &echoing);

    owner->socket->lends = one_in(4);
    owner->socket->tells_eof = one_in(2);
    return owner;
}

static inline void let_room(struct sim_socket *socket)
{
    switch (any_below(4)) {
    case 0:
        sim_set_room(socket, 0);
        break;
    case 1:
        sim_set_room(socket, any_below(50000));
        break;
    case 2:
        sim_set_room(socket, SIZE_MAX);
        break;
    default:
        socket->send_most = 1 + any_below(one_in(4) ? 20 : 100000);
    }
}

/* Does something on our side; false: the turn is the peer's. */
static inline bool act_on_owner(struct fixture *fixture, struct owner *owner)
{
    switch (any_below(12)) {
    case 0:
    case 1:
    case 2:
        let_room(owner->socket);
        return true;
    case 3:
        conn_stop(owner->conn);
        return true;
    case 4:
        conn_resume(owner->conn);
        return true;
    case 5:
        sim_pass(fixture->sim, any_below(100));
        return true;
    case 6:
        if (one_in(20))
            conn_fail(owner->conn, FB_ABORTED);
        else if (one_in(20))
            conn_close(owner->conn);
        fixture_settle(fixture);
        return true;
    default:
        return false;
    }
}

/* Lets the connection end, of whose peer all has been said. */
static inline void finish_owner(struct fixture *fixture, struct owner *owner)
{
    sim_set_room(owner->socket, SIZE_MAX);
    for (int i = 0; i < 3000 && owner->conn != NULL && conn_is_active(owner->conn); i++) {
        conn_resume(owner->conn);
        fixture_turn(fixture);
    }
    fixture_run(fixture);
    fixture_pass(fixture, 10000); /* the closed ones have lingered long enough */
    ck_assert_uint_eq(owner->closings, owner->openings > 0); /* ended before, perhaps */
    ck_assert(owner->socket->closed);
}

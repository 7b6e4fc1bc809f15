/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of randomly configured servers, with random actions of clients and protocols, now and
 * then without memory, perhaps during a drain: nothing of the sessions is left. The number of a
 * failing test is its seed. */
#include "features/hello.h"
#include "session/idle.h"
#include "session/random_ways.h"

#include <errno.h>

#define SEEDS 40
#define ROUNDS 60

static int open_somehow(fb_conn *conn, void *state_of)
{
    if (any_below(4) == 0)
        fb_write(conn, "banner", 6);
    if (any_below(8) == 0)
        fb_alloc(conn, 100);
    return act_on_opened(conn, state_of);
}

static size_t take_some(fb_conn *conn, void *state_of, fb_bytes in)
{
    (void)state_of;
    fb_write(conn, in.p, in.n);
    if (any_below(8) == 0)
        fb_close(conn);
    if (any_below(8) == 0)
        fb_set_idle(conn, (int)any_below(2));
    return any_below(4) == 0 ? any_below((uint32_t)in.n + 1) : in.n;
}

static void close_somehow(fb_conn *conn, void *state_of, fb_reason reason)
{
    (void)state_of;
    (void)reason;
    variable_value(conn, test.own);
    if (any_below(4) == 0)
        fb_write(conn, "bye", 3);
    if (any_below(4) == 0)
        fb_close(conn);
    if (any_below(8) == 0)
        fb_abort(conn);
}

static void configure_somehow(void)
{
    unsigned start = any_below(2);

    if (start == 1)
        test.servers[0]->binding.ops = &proxy_protocol_ops;
    if (any_below(2) == 0)
        pass_clients(open_somehow);
    if (any_below(2) == 0)
        test.second.binding.ops = &proxy_protocol_ops;
    for (unsigned i = 0; i < 2; i++) {
        struct limit_values *limits = server_feature(&test.servers[i]->server, FEATURE_LIMIT_CONN);

        test.servers[i]->script.opened = open_somehow;
        test.servers[i]->script.data = take_some;
        test.servers[i]->script.closed = close_somehow;
        configure_begin(i);
        if (any_below(8) == 0)
            add_before(i, PHASE_ACCESS, refuse, NULL);
        configure_end(i);
        limits->dry_run = any_below(4) == 0;
    }
}

/* Whether the client says more. */
static bool do_something(struct sim_socket *client)
{
    static const char line[] = LINE "hello";
    struct hello hello = hello_of(HELLO_NAME, sizeof(HELLO_NAME) - 1);
    size_t n;

    switch (any_below(14)) {
    case 0:
        n = 1 + any_below(sizeof(line) - 2);
        sim_say(client, line, n);
        sim_say(client, line + n, sizeof(line) - 1 - n);
        break;
    case 12:
        sim_say(client, hello.p, hello.n);
        break;
    case 13:
        sim_say(client, hello.p, any_below((uint32_t)hello.n) + 1);
        break;
    case 1:
    case 2:
    case 3:
        sim_say(client, line, any_below(sizeof(line) - 1) + 1);
        break;
    case 4:
        sim_end(client);
        return false;
    case 5:
        sim_break(client, ECONNRESET);
        return false;
    case 6:
        sim_set_room(client, any_below(20));
        break;
    case 7:
        sim_set_room(client, SIZE_MAX);
        break;
    default:
        sim_says(client, "more");
    }
    return true;
}

static void play(struct sim_socket *clients[CLIENTS])
{
    struct fixture *fixture = test.fixture;
    bool speaks[CLIENTS];

    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned at = any_below(CLIENTS);

        if (clients[at] == NULL || clients[at]->closed)
            speaks[at] = (clients[at] = scripted_connect(fixture)) != NULL;
        else if (speaks[at])
            speaks[at] = do_something(clients[at]);
        if (any_below(4) == 0)
            fixture_pass(fixture, any_below(4000));
        if (any_below(10) == 0)
            fixture->memory.until_failure = any_below(10);
        fixture_run(fixture);
        if (any_below(5) == 0)
            fixture->memory.until_failure = UINT_MAX;
        if (i == ROUNDS / 2 && any_below(2) == 0)
            session_drain(fixture->stream, any_below(2) * 5000);
        fixture_logged(fixture);
    }
    fixture->memory.until_failure = UINT_MAX;
}

START_TEST(nothing_is_left)
{
    struct sim_socket *clients[CLIENTS] = { NULL };

    state = (uint64_t)_i;
    begin();
    configure_somehow();
    play(clients);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, nothing_is_left, 0, SEEDS);
}

TEST_MAIN("session_random", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Balancers by connections, by times and by chance. */
#include "support/random.h"
#include "upstream/groups.h"

#define SESSIONS_MOST 64

/* A group with sessions that stay. */
struct load {
    struct group *group;
    struct choice choices[SESSIONS_MOST];
    unsigned n;
    uint64_t random;
};

static struct load load;

static uint32_t draw(struct upstreams *upstreams, uint32_t below)
{
    (void)upstreams;
    return random_below(&load.random, below);
}

static void create(const char *balancer, const uint32_t *weights)
{
    load = (struct load) { .group = group_create() };
    load.group->upstreams.random = draw;
    load.group->upstream.balance.balancer = balancer_find(balancer);
    ck_assert_ptr_nonnull(load.group->upstream.balance.balancer);
    while (*weights != 0)
        group_add(load.group, *weights++);
}

static void end(unsigned i, fb_try_end how)
{
    if (load.choices[i].peer != NULL)
        choice_end(&load.choices[i], how);
}

static void destroy(void)
{
    for (unsigned i = 0; i < load.n; i++)
        end(i, FB_TRY_SERVED);
    for (unsigned i = 0; i < load.group->upstream.peers->n; i++) {
        ck_assert_uint_eq(group_peer(load.group, i)->running, 0);
        ck_assert_uint_eq(group_peer(load.group, i)->running_began_ms, 0);
    }
    group_close(&load.group);
}

/* Begins a long session; returns the letter of the server. */
static char begin(void)
{
    struct choice *choice = &load.choices[load.n++];

    ck_assert_uint_le(load.n, SESSIONS_MOST);
    group_begin(load.group, choice);
    return group_next(load.group, choice);
}

static void expect(const char *letters)
{
    char seen[SESSIONS_MOST + 1] = "";

    for (size_t i = 0; i < strlen(letters); i++)
        seen[i] = begin();
    ck_assert_str_eq(seen, letters);
}

/* Gives a server an average time. */
static void set_time(unsigned i, enum upstream_time time, uint32_t ms)
{
    struct peer_state *state = group_peer(load.group, i)->state;

    PEER_STORE(state->times[time], ms * PEER_TIME_UNIT);
    PEER_STORE(state->checked_ms, load.group->loop.clock.mono_ms);
}

START_TEST(fewest_connections)
{
    create("least_conn", (const uint32_t[]) { 1, 1, 1, 0 });
    group_open(load.group);
    expect("abccba"); /* nginx 1.22 chooses the same, here and below */
    end(1, FB_TRY_SERVED);
    end(4, FB_TRY_SERVED);
    expect("bb");
    end(2, FB_TRY_SERVED);
    expect("c");
    destroy();
}
END_TEST

START_TEST(fewest_connections_for_their_weights)
{
    create("least_conn", (const uint32_t[]) { 3, 2, 1, 0 });
    group_open(load.group);
    expect("abcababcaaba");
    destroy();
}
END_TEST

START_TEST(equal_loads_take_turns_by_weight)
{
    create("least_conn", (const uint32_t[]) { 5, 1, 1, 0 });
    group_open(load.group);
    group_expect(load.group, "aabacaaaabacaa");
    destroy();
}
END_TEST

/* Weights lessened by failures count in turns alone. */
START_TEST(failures_do_not_add_connections)
{
    create("least_conn", (const uint32_t[]) { 2, 1, 0 });
    load.group->servers[0].max_fails = 2;
    group_open(load.group);
    expect("a");
    end(0, FB_TRY_FAILED);
    expect("baa");
    destroy();
}
END_TEST

START_TEST(backups_are_chosen_alike)
{
    const char *const names[] = { "least_conn", "least_time" };

    create(names[_i], (const uint32_t[]) { 1, 1, 1, 0 });
    load.group->servers[0].down = true;
    load.group->servers[1].backup = load.group->servers[2].backup = true;
    group_open(load.group);
    expect("bccb");
    end(0, FB_TRY_SERVED);
    end(2, FB_TRY_SERVED);
    expect("bc");
    destroy();
}
END_TEST

START_TEST(slow_start_takes_few)
{
    create("least_conn", (const uint32_t[]) { 1, 1, 0 });
    load.group->servers[1].slow_start = 10000;
    group_open(load.group);
    PEER_STORE(group_peer(load.group, 1)->state->available_ms, load.group->loop.clock.mono_ms);
    group_wait(load.group, 2500);
    expect("abaaaab");
    destroy();
}
END_TEST

START_TEST(room_is_kept)
{
    const char *const names[] = { "least_conn", "least_time", "random" };

    create(names[_i], (const uint32_t[]) { 1, 1, 0 });
    load.group->servers[0].max_conns = 1;
    load.group->servers[1].max_conns = 2;
    group_open(load.group);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_ne(begin(), '-');
    expect("-");
    destroy();
}
END_TEST

START_TEST(least_time)
{
    create("least_time", (const uint32_t[]) { 1, 1, 0 });
    load.group->upstream.balance.time = (enum upstream_time)_i;
    group_open(load.group);
    set_time(0, (enum upstream_time)_i, 95); /* 5 steps, and 2 */
    set_time(1, (enum upstream_time)_i, 39);
    expect("bb");  /* 5 to 2, 5 to 4, 5 to 6: */
    expect("abb"); /* 10 to 6, 10 to 8 */
    destroy();
}
END_TEST

START_TEST(least_time_for_weights)
{
    create("least_time", (const uint32_t[]) { 2, 1, 0 });
    group_open(load.group);
    set_time(0, UPSTREAM_TIME_CONNECT, 99);
    set_time(1, UPSTREAM_TIME_CONNECT, 79);
    expect("ab");
    destroy();
}
END_TEST

START_TEST(times_alike_take_turns)
{
    create("least_time", (const uint32_t[]) { 1, 1, 1, 0 });
    group_open(load.group);
    set_time(0, UPSTREAM_TIME_CONNECT, 6000 * (uint32_t)_i + 1);
    set_time(1, UPSTREAM_TIME_CONNECT, 7000 * (uint32_t)_i + 19);
    set_time(2, UPSTREAM_TIME_CONNECT, 9000 * (uint32_t)_i + 10);
    group_expect(load.group, "abcabc");
    destroy();
}
END_TEST

START_TEST(unmeasured_is_as_the_fastest)
{
    create("least_time", (const uint32_t[]) { 1, 1, 0 });
    group_open(load.group);
    set_time(0, UPSTREAM_TIME_CONNECT, 50);
    group_expect(load.group, "bbb");
    destroy();
}
END_TEST

START_TEST(slow_server_is_asked_again)
{
    create("least_time", (const uint32_t[]) { 1, 1, 0 });
    group_open(load.group);
    set_time(0, UPSTREAM_TIME_CONNECT, 25);
    set_time(1, UPSTREAM_TIME_CONNECT, 100);
    group_expect(load.group, "aaaa");
    for (unsigned i = 0; i < 3; i++) { /* 100, 50, 25, 12 */
        group_wait(load.group, 10001);
        PEER_STORE(group_peer(load.group, 0)->state->checked_ms, load.group->loop.clock.mono_ms);
        group_expect(load.group, i < 1 ? "aa" : i == 1 ? "" : "b");
    }
    destroy();
}
END_TEST

START_TEST(idle_for_ages)
{
    create("least_time", (const uint32_t[]) { 1, 1, 0 });
    load.group->servers[0].fail_timeout = load.group->servers[1].fail_timeout = 0;
    group_open(load.group);
    set_time(0, UPSTREAM_TIME_CONNECT, UINT32_MAX / PEER_TIME_UNIT);
    set_time(1, UPSTREAM_TIME_CONNECT, UINT32_MAX / PEER_TIME_UNIT);
    group_wait(load.group, 1000000);
    group_expect(load.group, "ab");
    destroy();
}
END_TEST

/* An unfinished try counts by the time so far. */
START_TEST(unfinished_tries_count)
{
    create("least_time", (const uint32_t[]) { 1, 1, 0 });
    load.group->upstream.balance.inflight = true;
    load.group->upstream.balance.time = (enum upstream_time)_i;
    group_open(load.group);
    expect("ab");
    group_wait(load.group, 10);
    if (_i == UPSTREAM_TIME_CONNECT)
        choice_connected(&load.choices[1]);
    else if (_i == UPSTREAM_TIME_FIRST_BYTE)
        choice_first_byte(&load.choices[1]);
    else
        end(1, FB_TRY_SERVED);
    ck_assert_uint_eq(group_peer(load.group, 0)->running, 1);
    ck_assert_uint_eq(group_peer(load.group, 1)->running, 0);
    group_wait(load.group, 100);
    ck_assert_int_eq(begin(), 'b');
    end(2, FB_TRY_SERVED);
    ck_assert_int_eq(begin(), 'b');
    destroy();
}
END_TEST

START_TEST(chance_goes_by_weight)
{
    unsigned seen[3] = { 0 };

    create("random", (const uint32_t[]) { 5, 2, 1, 0 });
    load.group->upstream.balance.two = _i == 1;
    group_open(load.group);
    for (unsigned i = 0; i < 8000; i++)
        seen[group_session(load.group, FB_TRY_SERVED) - 'a']++;
    if (_i == 0) {
        ck_assert_uint_gt(seen[0], 4800);
        ck_assert_uint_lt(seen[0], 5200);
        ck_assert_uint_gt(seen[1], 1850);
        ck_assert_uint_lt(seen[1], 2150);
    }
    ck_assert_uint_gt(seen[2], 800);
    destroy();
}
END_TEST

/* An equal random number makes equal choices in all workers. */
START_TEST(chance_is_the_workers)
{
    char letters[2][SESSIONS_MOST + 1] = { "", "" };

    for (unsigned round = 0; round < 2; round++) {
        create("random", (const uint32_t[]) { 1, 1, 1, 0 });
        group_open(load.group);
        for (unsigned i = 0; i < SESSIONS_MOST; i++)
            letters[round][i] = begin();
        destroy();
    }
    ck_assert_str_eq(letters[0], letters[1]);
}
END_TEST

START_TEST(better_of_two)
{
    unsigned conns[4] = { 0 };

    create("random", (const uint32_t[]) { 1, 1, 1, 1, 0 });
    load.group->upstream.balance.two = true;
    load.group->upstream.balance.two_by_time = _i == 1;
    group_open(load.group);
    for (unsigned i = 0; i < 48; i++)
        conns[begin() - 'a']++;
    for (unsigned i = 0; i < 4; i++) { /* chance alone would be further apart */
        ck_assert_uint_ge(conns[i], 10);
        ck_assert_uint_le(conns[i], 14);
    }
    destroy();
}
END_TEST

START_TEST(drawn_in_vain)
{
    char seen[4] = "";

    create("random", (const uint32_t[]) { 1000000, 1, 1, 0 });
    load.group->upstream.balance.two = _i == 1;
    load.group->servers[2].backup = true;
    group_open(load.group);
    begin();
    for (unsigned i = 0; i < 3; i++) {
        seen[i] = group_letter(load.group, &load.choices[0]);
        end(0, FB_TRY_FAILED);
        group_next(load.group, &load.choices[0]);
    }
    ck_assert_ptr_null(load.choices[0].peer);
    ck_assert(strcmp(seen, "abc") == 0 || strcmp(seen, "bac") == 0);
    destroy();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, fewest_connections);
    tcase_add_test(tcase, fewest_connections_for_their_weights);
    tcase_add_test(tcase, equal_loads_take_turns_by_weight);
    tcase_add_test(tcase, failures_do_not_add_connections);
    tcase_add_loop_test(tcase, backups_are_chosen_alike, 0, 2);
    tcase_add_test(tcase, slow_start_takes_few);
    tcase_add_loop_test(tcase, room_is_kept, 0, 3);
    tcase_add_loop_test(tcase, least_time, 0, 3);
    tcase_add_test(tcase, least_time_for_weights);
    tcase_add_loop_test(tcase, times_alike_take_turns, 0, 2);
    tcase_add_test(tcase, unmeasured_is_as_the_fastest);
    tcase_add_test(tcase, slow_server_is_asked_again);
    tcase_add_test(tcase, idle_for_ages);
    tcase_add_loop_test(tcase, unfinished_tries_count, 0, 3);
    tcase_add_loop_test(tcase, chance_goes_by_weight, 0, 2);
    tcase_add_test(tcase, chance_is_the_workers);
    tcase_add_loop_test(tcase, better_of_two, 0, 2);
    tcase_add_loop_test(tcase, drawn_in_vain, 0, 2);
}

TEST_MAIN("balancers_load", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The worker's side of a protocol: timers, messages, and the notice of a drain. */
#include "kit/kit.h"
#include "support/test.h"
#include "worker/references.h"

#include <stdlib.h>
#include <string.h>

struct state {
    fb_test *test;
    uint64_t began;
    unsigned timers, drainings;
    uint64_t deadline;
    int again; /* the timer sets itself again */
    fb_answer answer;
    int64_t sum; /* sum of the servers' numbers */
};

struct conf {
    int64_t n;
};

/* Calls, in their order, as "7@1000 ", "drain", "conn", "stop". */
static char calls[1024];

static void FB_SDK_PRINTF(1, 2) note(const char *format, ...)
{
    size_t n = strlen(calls);
    va_list args;

    va_start(args, format);
    vsnprintf(calls + n, sizeof(calls) - n, format, args);
    va_end(args);
}

static int side_start(fb_worker *worker, void *state)
{
    struct state *own = state;
    const struct conf *conf;

    test_require(fb_own_state(worker) == own);
    for (size_t i = 0; (conf = fb_worker_conf(worker, i)) != NULL; i++)
        own->sum = 10 * own->sum + conf->n;
    own->began = fb_mono_ms(worker);
    return fb_worker_timer(worker, 100, 5000);
}

static void side_stop(fb_worker *worker, void *state)
{
    test_require(fb_own_state(worker) == state);
    fb_worker_timer(worker, 1, 1); /* never heard of again */
    note("stop");
}

static void side_timer(fb_worker *worker, void *state, uint32_t id)
{
    struct state *own = state;

    test_require(fb_own_state(worker) == own);
    own->timers++;
    note("%u@%u ", id, (unsigned)(fb_mono_ms(worker) - own->began));
    if (own->again)
        test_require(fb_worker_timer(worker, id, 1000) == 0);
}

static void side_draining(fb_worker *worker, void *state, uint64_t deadline)
{
    struct state *own = state;

    test_require(fb_own_state(worker) == own);
    own->drainings++;
    own->deadline = deadline;
    note("drain ");
}

static int side_message(fb_worker *worker, void *state, fb_ref from, fb_bytes message)
{
    test_require(fb_own_state(worker) == state);
    note("%s:%.*s ", from == fb_worker_id(worker) ? "self" : "conn", (int)message.n,
        (const char *)message.p);
    return message.n == 2; /* "no" */
}

static void side_answered(fb_worker *worker, void *state, const fb_answer *answer)
{
    static const char *const names[] = { "none", "handled", "declined", "unknown", "busy" };
    struct state *own = state;

    test_require(fb_own_state(worker) == own);
    own->answer = *answer;
    note("%s ", names[answer->outcome]);
}

static int conn_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    (void)state;
    (void)from;
    note("given:%.*s ", (int)message.n, (const char *)message.p);
    return 0;
}

static fb_ref will; /* the receiver of a connection's notice of the close; 0: none */

static void conn_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    if (will != 0)
        test_require(fb_send_message(conn, will, "will", 4) != 0);
}

static void conn_answered(fb_conn *conn, void *state, uint64_t message, fb_outcome outcome)
{
    (void)conn;
    (void)state;
    (void)message;
    note("conn%d ", (int)outcome);
}

static void conn_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)state;
    note("conn%u@%u ", id,
        (unsigned)(fb_mono_ms(fb_worker_of(conn)) -
                   ((struct state *)fb_worker_state(conn))->began));
}

static void conn_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)conn;
    (void)state;
    (void)deadline;
    note("conn ");
}

static fb_ref latest; /* the connection that has said something last */

static size_t conn_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    latest = fb_ref_of(conn);
    if (in.p[0] == 's')
        fb_stop(conn);
    else
        fb_timer(conn, 7, 1500);
    return in.n;
}

static const fb_ops ops = {
    .size = sizeof(fb_ops),
    .data = conn_data,
    .timer = conn_timer,
    .draining = conn_draining,
    .message = conn_message,
    .answered = conn_answered,
    .closed = conn_closed,
};
static const fb_worker_ops worker_ops = {
    .size = sizeof(fb_worker_ops),
    .timer = side_timer,
    .draining = side_draining,
    .message = side_message,
    .answered = side_answered,
};
static const fb_directive directives[] = {
    { .name = "side", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "side_number", .value = FB_VALUE_NUMBER, .offset = offsetof(struct conf, n) },
};
static const fb_protocol side = {
    FB_PROTOCOL_HEADER,
    .name = "side",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct conf),
    .worker_state = sizeof(struct state),
    .ops = &ops,
    .worker_start = side_start,
    .worker_stop = side_stop,
    .worker_ops = &worker_ops,
};

static fb_test *start(void)
{
    fb_test *test = fb_test_start(&side, "side; first_byte_timeout off;");

    ck_assert_ptr_nonnull(test);
    calls[0] = '\0';
    return test;
}

static struct state *state_of(fb_test *test)
{
    return fb_own_state(fb_test_worker(test));
}

START_TEST(timers_of_a_worker_expire_in_time)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_says(peer, "x");
    fb_test_run(test); /* the connection's timer has the number of a timer of the worker */
    ck_assert_int_eq(fb_worker_timer(worker, 7, 3000), 0);
    ck_assert_int_eq(fb_worker_timer(worker, 8, 2000), 0);
    ck_assert_int_eq(fb_worker_timer(worker, 8, 4000), 0); /* moved back */
    ck_assert_int_eq(fb_worker_timer(worker, 9, 4500), 0);
    ck_assert_int_eq(fb_worker_timer(worker, 9, 2500), 0); /* moved to the front */
    ck_assert_int_eq(fb_worker_timer(worker, 10, 100), 0);
    ck_assert_int_eq(fb_worker_timer(worker, 11, UINT64_MAX), 0);
    ck_assert_int_eq(fb_worker_timer(worker, 12, 0), 0);
    fb_worker_timer_cancel(worker, 10);
    fb_worker_timer_cancel(worker, 10);
    fb_test_pass(test, 100000);
    ck_assert_str_eq(calls, "12@1 conn7@1500 9@2500 7@3000 8@4000 100@5000 ");
    ck_assert_int_eq(fb_test_end(&test), 0);
    ck_assert_str_eq(calls, "12@1 conn7@1500 9@2500 7@3000 8@4000 100@5000 stop");
}
END_TEST

START_TEST(a_timer_may_set_itself_again)
{
    fb_test *test = start();

    state_of(test)->again = 1;
    fb_test_pass(test, 10000);
    ck_assert_uint_eq(state_of(test)->timers, 6);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_timer_needs_memory)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);

    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_int_eq(fb_worker_timer(worker, i, 1000 + i), 0);
    fb_test_refuse_memory(test, 0, UINT64_MAX);
    ck_assert_int_eq(fb_worker_timer(worker, 1000, 1), -1);
    ck_assert_int_eq(fb_worker_timer(worker, 500, 10), 0); /* needs none */
    fb_test_pass(test, 10);
    ck_assert_str_eq(calls, "500@10 ");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(the_worker_is_told_that_it_drains)
{
    fb_test *test = start();
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_run(test);
    fb_test_drain(test, (uint64_t)_i);
    ck_assert_str_eq(calls, "drain conn ");
    ck_assert_uint_eq(state_of(test)->deadline, (uint64_t)_i);
    fb_test_drain(test, (uint64_t)_i);
    ck_assert_uint_eq(state_of(test)->drainings, 1);
    fb_test_pass(test, 5000); /* timers go on meanwhile */
    ck_assert_str_eq(calls, "drain conn 100@5000 ");
    fb_test_reset(peer);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A draining worker, with nothing but timers, ends. */
START_TEST(timers_do_not_keep_a_worker)
{
    fb_test *test = start();

    state_of(test)->again = 1;
    signals_raise(COMMAND_QUIT);
    worker_run(&test->workers->worker);
    ck_assert_int_eq(fb_test_end(&test), 0);
    ck_assert_str_eq(calls, "drain stop");
}
END_TEST

START_TEST(a_worker_sends_to_itself_and_to_connections)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    fb_test_peer *peer = fb_test_connect(test);
    fb_ref id = fb_worker_id(worker);
    uint64_t number;

    ck_assert_uint_eq(fb_worker_number(worker), 0);
    ck_assert_uint_eq(fb_worker_count(worker), 1);
    ck_assert_uint_ne(id, 0);
    ck_assert_ptr_null(fb_find(worker, id));
    fb_test_says(peer, "stop");
    fb_test_run(test);
    number = fb_send_worker(worker, id, "a", 1);
    ck_assert_uint_ne(number, 0);
    ck_assert_str_eq(calls, ""); /* no callback within the call */
    fb_test_run(test);
    ck_assert_str_eq(calls, "self:a handled ");
    ck_assert_uint_eq(state_of(test)->answer.message, number);
    ck_assert_uint_eq(state_of(test)->answer.to, id);
    ck_assert_uint_eq(state_of(test)->answer.left, 0);
    fb_send_worker(worker, id, "no", 2);
    fb_send_worker(worker, latest, "b", 1); /* stopped, and hears messages */
    fb_send_worker(worker, 0, "c", 1);
    fb_send_worker(worker, id + 1, "d", 1);
    fb_test_run(test);
    ck_assert_str_eq(calls, "self:a handled self:no given:b unknown declined handled unknown ");
    fb_test_reset(peer);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(all_may_be_nobody)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    uint64_t number = fb_send_all(worker, "x", 1);

    ck_assert_uint_ne(number, 0);
    fb_test_run(test);
    ck_assert_str_eq(calls, "handled ");
    ck_assert_uint_eq(state_of(test)->answer.message, number);
    ck_assert_uint_eq(state_of(test)->answer.to, 0);
    ck_assert_uint_eq(state_of(test)->answer.left, 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A connection sends to the worker, also in `closed`: no answer can come then. */
START_TEST(a_connection_sends_to_its_worker)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_says(peer, "x");
    fb_test_run(test);
    fb_send_message(fb_find(worker, latest), fb_worker_id(worker), "a", 1);
    fb_test_run(test);
    ck_assert_str_eq(calls, "conn:a conn1 ");
    will = fb_worker_id(worker);
    fb_test_reset(peer);
    fb_test_run(test);
    ck_assert_str_eq(calls, "conn:a conn1 conn:will ");
    fb_send_worker(worker, latest, "late", 4);
    fb_test_run(test);
    ck_assert_str_eq(calls, "conn:a conn1 conn:will unknown ");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(what_a_worker_may_send)
{
    static const char bytes[FB_MESSAGE_MAX + 1];
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    fb_ref id = fb_worker_id(worker);

    ck_assert_uint_eq(fb_send_worker(worker, id, bytes, sizeof(bytes)), 0);
    ck_assert_uint_eq(fb_send_all(worker, bytes, sizeof(bytes)), 0);
    for (unsigned i = 0; i < 16384; i++)
        ck_assert_uint_ne(fb_send_worker(worker, 0, NULL, 0), 0);
    ck_assert_uint_eq(fb_send_worker(worker, 0, NULL, 0), 0);
    ck_assert_uint_eq(fb_send_all(worker, NULL, 0), 0);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_message_without_memory_is_refused)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);

    fb_test_refuse_memory(test, (uint64_t)_i, 1);
    if (fb_send_worker(worker, fb_worker_id(worker), "a", 1) != 0) {
        fb_test_run(test);
        ck_assert_str_eq(calls, "self:a handled ");
    }
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* A worker's name holds its whole serial; a connection's reference is not found in a later life of
 * the slot, despite an equal incarnation. */
START_TEST(a_reference_does_not_come_again)
{
    const fb_test_options options = {
        .size = sizeof(options), .server = "side; first_byte_timeout off;", .seed = 7
    };
    fb_test *test = start();
    fb_test_peer *peer = fb_test_connect(test);
    struct slot_id slot = test->workers->heritage.slot;
    fb_ref conn, id = fb_worker_id(fb_test_worker(test));

    fb_test_says(peer, "x");
    fb_test_run(test);
    conn = latest;
    ck_assert_uint_eq(references_of_slot(slot), id);
    for (int i = 0; i < 20; i++) {
        slot.serial += 8192;
        ck_assert_uint_eq(
            references_incarnation(references_of_slot(slot)), references_incarnation(id));
        ck_assert_uint_ne(references_of_slot(slot), id);
        ck_assert(references_is_worker(references_of_slot(slot)));
    }
    ck_assert(!references_is_worker(conn));
    fb_test_reset(peer);
    ck_assert_int_eq(fb_test_end(&test), 0);

    test = fb_test_start_with(&side, &options);
    for (int i = 0; i < 100; i++) {
        fb_test_says(fb_test_connect(test), "x");
        fb_test_run(test);
        ck_assert_uint_eq(references_incarnation(latest), references_incarnation(conn));
        ck_assert_uint_ne(latest, conn);
        ck_assert_ptr_null(fb_find(fb_test_worker(test), conn));
    }
    ck_assert_ptr_nonnull(strstr(fb_test_logged(test), "references were used that were never"));
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

/* Too many guesses, and for a second messages to connections are refused. */
START_TEST(guesses_make_a_worker_deaf)
{
    fb_test *test = start();
    fb_worker *worker = fb_test_worker(test);
    fb_test_peer *peer = fb_test_connect(test);

    fb_test_says(peer, "x");
    fb_test_run(test);
    for (fb_ref i = 1; i <= 1100; i++)
        fb_send_worker(worker, latest ^ i, "x", 1);
    fb_test_run(test);
    ck_assert_int_eq(state_of(test)->answer.outcome, FB_MESSAGE_BUSY);
    calls[0] = '\0';
    fb_send_worker(worker, latest, "x", 1);
    fb_send_worker(worker, fb_worker_id(worker), "y", 1);
    fb_test_run(test);
    ck_assert_str_eq(calls, "self:y busy handled ");
    fb_test_pass(test, 1000);
    calls[0] = '\0';
    fb_send_worker(worker, latest, "x", 1);
    fb_test_run(test);
    ck_assert_str_eq(calls, "given:x handled ");
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

START_TEST(a_worker_knows_its_servers)
{
    static const fb_test_options options = {
        .size = sizeof(options),
        .server = "side; side_number 3;",
        .stream = "server { listen 192.0.2.81:80; side; side_number 4; }"
                  "server { listen 192.0.2.82:80; } side_number 5;"
                  "server { listen 192.0.2.83:80; side; }",
    };
    fb_test *test = fb_test_start_with(&side, &options);

    ck_assert_ptr_nonnull(test);
    ck_assert_int_eq(state_of(test)->sum, 453);
    ck_assert_int_eq(fb_test_end(&test), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, timers_of_a_worker_expire_in_time);
    tcase_add_test(tcase, a_timer_may_set_itself_again);
    tcase_add_test(tcase, a_timer_needs_memory);
    tcase_add_loop_test(tcase, the_worker_is_told_that_it_drains, 0, 2);
    tcase_add_test(tcase, timers_do_not_keep_a_worker);
    tcase_add_test(tcase, a_worker_sends_to_itself_and_to_connections);
    tcase_add_test(tcase, all_may_be_nobody);
    tcase_add_test(tcase, a_connection_sends_to_its_worker);
    tcase_add_test(tcase, what_a_worker_may_send);
    tcase_add_loop_test(tcase, a_message_without_memory_is_refused, 0, 4);
    tcase_add_test(tcase, a_reference_does_not_come_again);
    tcase_add_test(tcase, guesses_make_a_worker_deaf);
    tcase_add_test(tcase, a_worker_knows_its_servers);
}

TEST_MAIN("sdk_worker", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A keeper's worker and its end: handshakes, links, broken rules, signals. */
#include "keeper/one_keeper.h"

#include "process/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(it_says_ready_and_accepts)
{
    start();
    send_message(MESSAGE_ACCEPT, 0, -1);
    turn(1);
    expect_message(MESSAGE_ACCEPTING, 0);
    expect_no_message();
    /* for workers alone */
    send_message(MESSAGE_RESCAN, 0, -1);
    send_message(MESSAGE_TRIM, 0, -1);
    send_message(MESSAGE_SIBLING_INBOX, 3, master);
    send_message(MESSAGE_FILE, 0, master);
    turn(1);
    expect_no_message();
    ck_assert(!keeper_has_ended(&keeper));
    stop();
}
END_TEST

START_TEST(it_has_the_level_of_an_operator)
{
    enum log_level own;

    start();
    own = keeper.log.level;
    heritage.shared->published->log_override = LOG_OVERRIDE(LEVEL_ERROR);
    send_message(MESSAGE_LOG_LEVEL, 0, -1);
    turn(1);
    ck_assert_int_eq(keeper.log.level, LEVEL_ERROR);
    heritage.shared->published->log_override = 0;
    send_message(MESSAGE_LOG_LEVEL, 0, -1);
    turn(1);
    ck_assert_int_eq(keeper.log.level, own);
    stop();
}
END_TEST

/* The master waits for the report of a living keeper, and asks no other one meanwhile. */
START_TEST(a_report_waits_for_a_full_channel)
{
    const struct channel_message filler = { MESSAGE_ACCEPTING, 0, -1 };
    const time_t deadline = test_second() + TEST_PATIENCE_MS / 1000;
    struct channel_message message;

    start();
    while (channel_send(heritage.channel, &filler) == 0)
        continue;
    send_message(MESSAGE_REPORT_WANTED, 0, master);
    turn(1);
    do {
        if (channel_receive(master, &message) != CHANNEL_DONE)
            keeper_turn(&keeper, 20);
        ck_assert_msg(test_second() < deadline, "there is no report");
    } while (message.kind != MESSAGE_REPORT);
    expect_no_message();
    stop();
}
END_TEST

START_TEST(it_begins_and_forgets_handshakes)
{
    struct tls_part part;

    start();
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++) {
        send_request(TLS_BEGIN, NUMBER(i), 0, "", 0);
        turn(1);
        ck_assert(receive_part(&part));
        ck_assert_uint_eq(part.number, NUMBER(i));
        ck_assert_int_eq(part.step, TLS_MORE);
        ck_assert_uint_gt(part.out.n, 30);
    }
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), TLS_HANDSHAKES_MOST);
    send_request(TLS_FEED, NUMBER(7), 0, "garbage of a peer", 17);
    send_request(TLS_CANCEL, NUMBER(8), 0, "", 0);
    send_request(TLS_CANCEL, NUMBER(7), 0, "", 0); /* crosses the reply */
    turn(1);
    ck_assert(receive_part(&part));
    ck_assert_int_eq(part.step, TLS_FAILED);
    ck_assert_str_eq(part.text, "a message that is too long");
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), TLS_HANDSHAKES_MOST - 2);
    stop();
}
END_TEST

START_TEST(a_dead_workers_handshakes_end)
{
    struct tls_part part;

    start();
    send_request(TLS_BEGIN, NUMBER(0), 1, "", 0);
    turn(1);
    ck_assert(receive_part(&part));
    close(worker);
    worker = -1;
    turn(1);
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), 0);
    ck_assert_ptr_null(keeper.link);
    ck_assert(!keeper_has_ended(&keeper));
    /* the next worker begins anew */
    connect_worker();
    send_request(TLS_BEGIN, NUMBER(0), 1, "", 0);
    turn(1);
    ck_assert(receive_part(&part));
    stop();
}
END_TEST

START_TEST(a_new_link_ends_the_last)
{
    struct tls_part part;

    start();
    send_request(TLS_BEGIN, NUMBER(0), 1, "", 0);
    turn(1);
    ck_assert(receive_part(&part));
    connect_worker();
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), 0);
    send_request(TLS_BEGIN, NUMBER(0), 1, "", 0);
    turn(1);
    ck_assert(receive_part(&part));
    stop();
}
END_TEST

START_TEST(another_descriptor_is_no_link)
{
    start();
    send_message(MESSAGE_LINK, 2, STDIN_FILENO);
    turn(1);
    ck_assert_ptr_null(keeper.link);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "the worker process cannot be reached"));
    connect_worker();
    ck_assert_ptr_nonnull(keeper.link);
    stop();
}
END_TEST

START_TEST(a_broken_rule_ends_the_link)
{
    static const char *const rules[] = { "a malformed message", "a malformed message",
        "a request that fits no handshake", "a request that fits no handshake",
        "a request that fits no handshake", "a ticket within a handshake" };
    char line[128];

    start();
    switch (_i) {
    case 0:
        ck_assert_int_eq(send(worker, "garbage", 7, 0), 7);
        break;
    case 1:
        memset(packet, 0, sizeof(packet));
        ck_assert_int_eq(send(worker, packet, sizeof(packet), 0), (ssize_t)sizeof(packet));
        break;
    case 2:
        send_request(TLS_FEED, NUMBER(0), 0, "x", 1);
        break;
    case 3:
        send_request(TLS_BEGIN, NUMBER(0), 2, "x", 1);
        break;
    case 4:
        send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
        send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
        turn(1);
        ck_assert_int_gt(recv(worker, packet, sizeof(packet), 0), 0);
        break;
    default:
        send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
        send_request(TLS_TICKET, NUMBER(0), 0, "x", 1);
        turn(1);
        ck_assert_int_gt(recv(worker, packet, sizeof(packet), 0), 0);
    }
    turn(1);
    ck_assert(is_link_closed());
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), 0);
    snprintf(
        line, sizeof(line), "the worker process has broken a rule of its link (%s)", rules[_i]);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), line));
    ck_assert(!keeper_has_ended(&keeper));
    stop();
}
END_TEST
#define RULES 6

START_TEST(a_worker_that_does_not_read_holds_up_itself)
{
    unsigned begun = 0, replied = 0;
    struct tls_part part;

    start();
    for (unsigned i = 0; i < TLS_HANDSHAKES_MOST; i++) {
        const struct tls_request request = { .kind = TLS_BEGIN, .number = NUMBER(i) };
        size_t n = tls_message_write_request(&request, packet);

        if (send(worker, packet, n, 0) == -1)
            break;
        begun++;
        turn(1);
    }
    ck_assert_uint_lt(begun, TLS_HANDSHAKES_MOST);
    ck_assert_ptr_nonnull(keeper.reply);
    while (replied < begun) {
        turn(1);
        while (receive_part(&part))
            ck_assert_uint_eq(part.number, NUMBER(replied++));
    }
    ck_assert_ptr_null(keeper.reply);
    stop();
}
END_TEST

START_TEST(a_drain_ends_with_the_worker)
{
    struct tls_part part;

    start();
    send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
    turn(1);
    signals_deliver(SIGQUIT, 1);
    turn(2);
    expect_message(MESSAGE_RELEASED, 0);
    expect_no_message();
    ck_assert(!keeper_has_ended(&keeper));
    ck_assert(receive_part(&part));
    /* handshakes under way go on */
    send_request(TLS_FEED, NUMBER(0), 0, "garbage of a peer", 17);
    turn(1);
    ck_assert(receive_part(&part));
    close(worker);
    worker = -1;
    turn(1);
    ck_assert(keeper_has_ended(&keeper));
    stop();
}
END_TEST

START_TEST(a_signal_ends_it_at_once)
{
    static const struct {
        int signal;
        bool sigterm_graceful;
    } cases[] = { { SIGINT, true }, { SIGTERM, false } };

    cycle.core.sigterm_graceful = cases[_i].sigterm_graceful;
    start();
    signals_deliver(cases[_i].signal, 1);
    turn(1);
    ck_assert(keeper_has_ended(&keeper));
    stop();
}
END_TEST

START_TEST(without_a_master_it_drains)
{
    start();
    close(master);
    master = -1;
    turn(1);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "the master process has gone"));
    ck_assert(!keeper_has_ended(&keeper));
    close(worker);
    worker = -1;
    turn(1);
    ck_assert(keeper_has_ended(&keeper));
    stop();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, it_has_the_level_of_an_operator);
    tcase_add_test(tcase, it_says_ready_and_accepts);
    tcase_add_test(tcase, a_report_waits_for_a_full_channel);
    tcase_add_test(tcase, it_begins_and_forgets_handshakes);
    tcase_add_test(tcase, a_dead_workers_handshakes_end);
    tcase_add_test(tcase, a_new_link_ends_the_last);
    tcase_add_test(tcase, another_descriptor_is_no_link);
    tcase_add_loop_test(tcase, a_broken_rule_ends_the_link, 0, RULES);
    tcase_add_test(tcase, a_worker_that_does_not_read_holds_up_itself);
    tcase_add_test(tcase, a_drain_ends_with_the_worker);
    tcase_add_loop_test(tcase, a_signal_ends_it_at_once, 0, 2);
    tcase_add_test(tcase, without_a_master_it_drains);
}

TEST_MAIN("keeper", add_tests)

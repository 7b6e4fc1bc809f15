/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands to a worker, and the worker's end. */
#include "support/fixture_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define DRAINING "t: [notice] gracefully shutting down\n"

static const struct fixture_worker_options one_of_two = {
    .connections = 16,
    .processes = 2,
    .mutex = true,
};

static void give_order(struct fixture *fixture, enum command order)
{
    signals_raise(order);
    worker_take_commands(fixture->worker);
}

START_TEST(a_drain_lets_sessions_finish)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);
    struct sim_socket *first = fixture_connect_client(fixture);

    fixture_turn(fixture);
    fixture_connect_clients(fixture, 3); /* accepted before the order: unknown to further workers */
    give_order(fixture, COMMAND_QUIT);
    ck_assert_str_eq(fixture_logged(fixture), DRAINING);
    ck_assert_uint_eq(fixture->listening[0]->waiting, 0);
    ck_assert(!fixture->listening[0]->listening);
    ck_assert_int_eq(fixture->listener->fds[0], -1);
    give_order(fixture, COMMAND_QUIT); /* once is enough */

    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, 0); /* they are opened without waiting for anything */
    ck_assert_uint_eq(fixture->server.record.openings, 4);
    fixture_turn(fixture);
    ck_assert_int_eq(fixture->sim->timeout, -1); /* the worker has no use for the mutex */
    sim_says(first, "still here");
    fixture_turn(fixture);
    ck_assert_uint_eq(first->sent_n, 10);
    ck_assert_int_eq(fixture->worker->phase, WORKER_DRAINING);

    fixture_end_all(fixture);
    fixture_logged(fixture);
    worker_run(fixture->worker); /* returns, because nothing is left */
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_drain_ends)
{
    struct fixture_worker_options options = one_of_two;
    struct fixture *fixture;
    uint64_t start;

    options.shutdown_timeout = 3000;
    fixture = fixture_start_worker(&options);
    fixture_connect_clients(fixture, 2);
    fixture_turn_until_open(fixture, 2);
    give_order(fixture, COMMAND_QUIT);
    start = fixture->loop->clock.mono_ms;
    worker_run(fixture->worker);
    ck_assert_uint_eq(fixture->loop->clock.mono_ms, start + 3000);
    ck_assert_uint_eq(fixture->server.record.closings, 2);
    ck_assert_int_eq(fixture->server.record.reason, FB_DRAINED);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture),
        "t: [notice] worker_shutdown_timeout has passed, 2 connections are closed\n"));
    fixture_stop(fixture);
}
END_TEST

START_TEST(an_end_at_once_closes_everything)
{
    struct fixture *fixture = fixture_start_worker(&one_of_two);

    fixture_connect_clients(fixture, 2);
    fixture_turn_until_open(fixture, 2);
    fixture_connect_client(fixture); /* no client is taken any more */
    give_order(fixture, COMMAND_TERMINATE);
    worker_run(fixture->worker);
    ck_assert_str_eq(fixture_logged(fixture), "");
    fixture_stop(fixture);
}
END_TEST

/* From here on with the kernel's channel. */

static struct fixture *open_real(void)
{
    struct fixture_worker_options options = one_of_two;

    options.mechanism = mechanism_find(NULL);
    return fixture_prepare_worker(&options);
}

static void send_order(
    struct fixture *fixture, enum channel_message_kind kind, uint32_t argument, int fd)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = fd };

    ck_assert_int_eq(channel_send(fixture->master, &message), 0);
}

static void check_told(struct fixture *fixture, enum channel_message_kind kind)
{
    struct pollfd ready = { .fd = fixture->master, .events = POLLIN };

    ck_assert_int_eq(poll(&ready, 1, TEST_PATIENCE_MS), 1);
    ck_assert_uint_eq(fixture_receive_message(fixture), kind);
}

START_TEST(the_master_has_it_begin)
{
    struct fixture *fixture = open_real();

    channel_end_send(&fixture->worker->to_master, MESSAGE_READY);
    check_told(fixture, MESSAGE_READY);
    ck_assert_int_ne(fixture->worker->accept.phase, ACCEPT_OPEN);
    send_order(fixture, MESSAGE_ACCEPT, 0, -1);
    worker_turn(fixture->worker);
    ck_assert_int_eq(fixture->worker->accept.phase, ACCEPT_OPEN);
    check_told(fixture, MESSAGE_ACCEPTING);
    fixture_stop(fixture);
}
END_TEST

START_TEST(one_that_drains_does_not_begin)
{
    struct fixture *fixture = open_real();

    give_order(fixture, COMMAND_QUIT);
    send_order(fixture, MESSAGE_ACCEPT, 0, -1);
    worker_turn(fixture->worker);
    ck_assert_int_ne(fixture->worker->accept.phase, ACCEPT_OPEN);
    check_told(fixture, MESSAGE_RELEASED);
    if (fixture->worker->accept.sharing == SHARING_EXCLUSIVE)
        check_told(fixture, MESSAGE_RESCAN);
    check_told(fixture, MESSAGE_ACCEPTING); /* the master would wait for it otherwise */
    ck_assert_str_eq(fixture_logged(fixture), DRAINING);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_master_hands_it_new_logs)
{
    struct fixture *fixture = open_real();
    int old = fixture->log.target.fd, file[2], spare;

    ck_assert_int_eq(pipe2(file, O_CLOEXEC | O_NONBLOCK), 0);
    fixture->log.target.fd = dup(old); /* closed by the worker for the new log */
    spare = fixture->log.target.fd;
    send_order(fixture, MESSAGE_LOG_FILE, 7, file[1]); /* no such log: the descriptor is closed */
    send_order(fixture, MESSAGE_LOG_FILE, 0, file[1]);
    worker_turn(fixture->worker);
    close(file[1]);
    ck_assert_int_ne(fixture->log.target.fd, spare);
    log_write(&fixture->worker->log, LEVEL_NOTICE, 0, "into the new file");
    close(fixture->log.target.fd);
    fixture->log.target.fd = old;

    ck_assert_int_eq(read(file[0], fixture->log.text, sizeof(fixture->log.text)), 30);
    ck_assert_int_eq(memcmp(fixture->log.text, "t: [notice] into the new file\n", 30), 0);
    ck_assert_int_eq(read(file[0], fixture->log.text, 1), 0); /* no other end of it is left */
    close(file[0]);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_master_has_a_level_for_its_log)
{
    struct fixture *fixture = open_real();
    struct log *log = &fixture->worker->log;
    _Atomic uint32_t *level = &fixture->worker->heritage->shared->published->log_override;
    enum log_level own = log->level;

    *level = LOG_OVERRIDE(LEVEL_ERROR);
    ck_assert_int_eq(log->level, own);
    send_order(fixture, MESSAGE_LOG_LEVEL, 0, -1);
    worker_turn(fixture->worker);
    ck_assert_int_eq(log->level, LEVEL_ERROR);
    *level = 0;
    send_order(fixture, MESSAGE_LOG_LEVEL, 0, -1);
    worker_turn(fixture->worker);
    ck_assert_int_eq(log->level, own);
    fixture_stop(fixture);
}
END_TEST

START_TEST(without_its_master_it_drains)
{
    struct fixture *fixture = open_real();

    accept_open(fixture->worker);
    close(fixture->master);
    fixture->master = -1;
    worker_run(fixture->worker);
    ck_assert_str_eq(fixture_logged(fixture), "t: [alert] the master process has gone\n" DRAINING);
    ck_assert_ptr_null(fixture->worker->channel);
    channel_end_send(&fixture->worker->to_master, MESSAGE_RESCAN); /* to nobody */
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_drain_lets_sessions_finish);
    tcase_add_test(tcase, a_drain_ends);
    tcase_add_test(tcase, an_end_at_once_closes_everything);
    tcase_add_test(tcase, the_master_has_it_begin);
    tcase_add_test(tcase, one_that_drains_does_not_begin);
    tcase_add_test(tcase, the_master_hands_it_new_logs);
    tcase_add_test(tcase, the_master_has_a_level_for_its_log);
    tcase_add_test(tcase, without_its_master_it_drains);
}

TEST_MAIN("drain", add_tests)

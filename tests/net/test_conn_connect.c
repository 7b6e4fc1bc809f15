/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that we make. */
#include "support/owner.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void settle_both(struct fixture *fixture)
{
    fixture_settle(fixture);
    fixture_run(fixture);
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(a_server_accepts)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    server->at_once = _i / FIXTURE_EVENTS;
    a = owner_connect(fixture, NULL);
    ck_assert_uint_eq(a->openings, 0); /* no callback within the call */
    settle_both(fixture);
    ck_assert_uint_eq(a->openings, 1);
    owner_accept(server, a);
    conn_write(a->conn, "question", 8);
    settle_both(fixture);
    ck_assert_str_eq(owner_sent(a), "question");
    sim_says(a->socket, "answer");
    fixture_run(fixture);
    ck_assert_str_eq(a->last, "answer");
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_uint_eq(server->tries, 1);
    end_all(fixture, &a);
}
END_TEST

static struct owner *connect_unanswered(struct fixture *fixture, struct sim_server *server)
{
    struct owner *owner;

    sim_server_answer(server, SIM_SILENT, 0);
    owner = owner_connect(fixture, NULL);
    settle_both(fixture);
    return owner;
}

START_TEST(an_answer_comes_late)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = connect_unanswered(fixture, server);

    conn_write(a->conn, "early", 5);
    settle_both(fixture);
    ck_assert_uint_eq(a->openings, 0);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_str_eq(owner_sent(owner_accept(server, a)), "early");
    end_all(fixture, &a);
}
END_TEST

/* The worker is stopped: the answer and the timeout are found in the same turn. */
START_TEST(an_answer_is_in_time)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = connect_unanswered(fixture, server);

    conn_deadline_set(a->conn, 50);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_pass(fixture, 100);
    ck_assert_uint_eq(a->openings, 1);
    owner_accept(server, a);
    end_all(fixture, &a);
}
END_TEST

static const struct refusal {
    int error;
    fb_reason reason;
} refusals[] = {
    { ECONNREFUSED, FB_REFUSED },
    { ENOENT, FB_REFUSED },
    { ETIMEDOUT, FB_TIMED_OUT },
    { ECONNRESET, FB_RESET },
    { EHOSTUNREACH, FB_IO_ERROR },
    { ENOBUFS, FB_NO_MEMORY },
};

START_TEST(a_server_refuses)
{
    const struct refusal *refusal = &refusals[_i % countof(refusals)];
    struct fixture *fixture = fixture_start_net(FIXTURE_EDGE, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    sim_server_answer(server, SIM_REFUSES, refusal->error);
    server->at_once = (size_t)_i >= countof(refusals);
    a = owner_connect(fixture, NULL);
    conn_write(a->conn, "for nobody", 10);
    ck_assert_uint_eq(a->closings, 0); /* no callback within the call */
    settle_both(fixture);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, refusal->reason);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "connect() failed"));
    end_all(fixture, &a);
}
END_TEST

static void time_out(struct owner *owner)
{
    conn_fail(owner->conn, FB_TIMED_OUT);
}

START_TEST(a_silent_server_is_its_owners_to_give_up)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    const struct owner like = { .expired = time_out };
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, &like);
    conn_deadline_set(a->conn, 1000);
    settle_both(fixture);
    fixture_pass(fixture, 999);
    ck_assert_uint_eq(a->closings, 0);
    fixture_pass(fixture, 1);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    end_all(fixture, &a);
}
END_TEST

static size_t forward_input(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, in.p, in.n);
    return in.n;
}

/* Output borrowed from another connection's input is copied before the server answers. */
START_TEST(borrowed_output_waits_in_memory_of_its_own)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct sim_server *server = owner_server(fixture);
    struct owner *a, *client = owner_open(fixture), *noise = owner_open(fixture);

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    client->data = forward_input;
    client->other = a;
    sim_says(client->socket, "what the client said");
    fixture_run(fixture);
    sim_says(noise->socket, "xxxxxxxxxxxxxxxxxxxxxxx");
    fixture_run(fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner_accept(server, a)), "what the client said");
    fixture_end_all(fixture);
    owner_free(&client);
    owner_free(&noise);
    end_all(fixture, &a);
}
END_TEST

static void count_release(void *n)
{
    ++*(unsigned *)n;
}

START_TEST(early_output_of_all_kinds_and_an_early_end)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    int fd = memfd_create("file", MFD_CLOEXEC);
    unsigned releases = 0;
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    ck_assert_int_eq(write(fd, "file", 4), 4);
    conn_write_file(a->conn, fd, 0, 4);
    conn_write_ref(a->conn, "memory", 6, count_release, &releases);
    conn_push(a->conn);
    settle_both(fixture);
    ck_assert_uint_eq(releases, 0);
    conn_shutdown(a->conn);
    settle_both(fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner_accept(server, a)), "filememory");
    ck_assert_uint_eq(releases, 1);
    ck_assert(a->socket->shut);
    ck_assert_uint_eq(a->openings, 1);
    sim_end(a->socket);
    fixture_run(fixture);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_close_before_the_answer)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;
    bool abort = _i / FIXTURE_EVENTS;

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    settle_both(fixture);
    if (abort)
        conn_fail(a->conn, FB_ABORTED);
    else
        conn_close(a->conn);
    settle_both(fixture);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, abort ? FB_ABORTED : FB_FINISHED);
    end_all(fixture, &a);
}
END_TEST

/* "Sends what is still unsent, then closes." */
START_TEST(a_close_before_the_answer_sends_what_was_written)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    sim_server_answer(server, _i / FIXTURE_EVENTS ? SIM_ACCEPTS : SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle_both(fixture);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(owner_accept(server, a)), "note");
    ck_assert_uint_eq(a->openings, 0); /* closed by its owner before */
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end_all(fixture, &a);
}
END_TEST

START_TEST(a_close_at_once_whose_output_waits)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    server->at_once = true;
    a = owner_connect(fixture, NULL);
    sim_set_room(owner_accept(server, a)->socket, 2);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle_both(fixture);
    ck_assert_uint_eq(a->closings, 0);
    ck_assert_uint_eq(a->openings, 0);
    sim_set_room(a->socket, 2);
    fixture_run(fixture);
    ck_assert_str_eq(owner_sent(a), "note");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end_all(fixture, &a);
}
END_TEST

START_TEST(the_refusal_of_one_that_was_closed)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = owner_connect(fixture, NULL);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle_both(fixture);
    sim_server_answer(server, SIM_REFUSES, 0);
    fixture_run(fixture);
    ck_assert_int_eq(a->reason, FB_REFUSED);
    ck_assert_uint_eq(a->closings, 1);
    fixture_logged(fixture);
    end_all(fixture, &a);
}
END_TEST

static void stop_reading(struct owner *owner)
{
    conn_stop(owner->conn);
}

START_TEST(stopped_before_it_is_connected)
{
    const struct owner like = { .opened = _i / FIXTURE_EVENTS ? stop_reading : NULL };
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = owner_connect(fixture, &like);

    if (like.opened == NULL)
        conn_stop(a->conn);
    settle_both(fixture);
    sim_says(owner_accept(server, a)->socket, "banner");
    fixture_run(fixture);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_uint_eq(a->datas, 0);
    conn_resume(a->conn);
    settle_both(fixture);
    ck_assert_uint_eq(a->datas, 1);
    end_all(fixture, &a);
}
END_TEST

START_TEST(slots_and_gauges)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct sim_server *server = owner_server(fixture);
    struct owner *client = owner_open(fixture), *a, *b, *none;

    a = owner_connect(fixture, NULL);
    sim_server_answer(server, SIM_SILENT, 0);
    b = owner_connect(fixture, NULL);
    settle_both(fixture);
    ck_assert_uint_eq(fixture->net->connection_n, 3);
    ck_assert_uint_eq(fixture->net->client_n, 1);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_ACTIVE), 1);
    none = owner_connect(fixture, NULL);
    ck_assert_ptr_null(none->conn);
    free(none);
    settle_both(fixture);

    /* a connection to a server is no client */
    sim_set_room(owner_accept(server, a)->socket, 0);
    a->data = owner_leave_input;
    conn_write(a->conn, "unsent", 6);
    sim_says(a->socket, "unconsumed");
    settle_both(fixture);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_WRITING), 0);
    ck_assert_uint_eq(fixture_count(fixture, COUNTER_READING), 0);

    fixture->released = 0;
    conn_fail(a->conn, FB_ABORTED);
    conn_fail(b->conn, FB_ABORTED);
    settle_both(fixture);
    ck_assert_uint_eq(fixture->released, 2);
    ck_assert_uint_eq(fixture->net->connection_n, 1);
    ck_assert_uint_eq(fixture->net->client_n, 1);
    owner_free(&a);
    owner_free(&b);
    end_all(fixture, &client);
}
END_TEST

static void connect_again(struct owner *owner)
{
    if (owner->n > 0)
        owner->other = owner_connect(owner->fixture, NULL);
}

START_TEST(a_refused_one_is_tried_again_in_its_place)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    const struct owner like = { .closed = connect_again, .n = 1 };
    struct owner *a, *b;

    sim_server_answer(server, SIM_REFUSES, 0);
    server->at_once = true;
    a = owner_connect(fixture, &like);
    settle_both(fixture);
    b = a->other;
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->reason, FB_REFUSED);
    ck_assert_uint_eq(server->tries, 2);
    fixture_logged(fixture);
    owner_free(&b);
    end_all(fixture, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_server_accepts, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_answer_comes_late, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_answer_is_in_time, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_server_refuses, 0, 2 * (int)countof(refusals));
    tcase_add_loop_test(tcase, a_silent_server_is_its_owners_to_give_up, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, borrowed_output_waits_in_memory_of_its_own, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, early_output_of_all_kinds_and_an_early_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_before_the_answer, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(
        tcase, a_close_before_the_answer_sends_what_was_written, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_at_once_whose_output_waits, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_refusal_of_one_that_was_closed, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, stopped_before_it_is_connected, 0, 2 * FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, slots_and_gauges, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_refused_one_is_tried_again_in_its_place, 0, FIXTURE_EVENTS);
}

TEST_MAIN("conn_connect", add_tests)

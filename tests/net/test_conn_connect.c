/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that we make. */
#include "net/bed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void settle(struct bed *bed)
{
    net_flush(&bed->net);
    bed_run(bed);
}

static void end(struct bed *bed, struct owner **owner)
{
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(owner);
    bed_tear_down(bed);
}

START_TEST(a_server_accepts)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer_at_once(server, _i / BED_MECHANISMS);
    a = bed_connect(bed, NULL);
    ck_assert_uint_eq(a->openings, 0); /* no callback within the call */
    settle(bed);
    ck_assert_uint_eq(a->openings, 1);
    bed_accept(server, a);
    conn_write(a->conn, "question", 8);
    settle(bed);
    ck_assert_str_eq(bed_sent(a), "question");
    fake_says(a->socket, "answer");
    bed_run(bed);
    ck_assert_str_eq(a->last, "answer");
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_uint_eq(sim_server_tries(server), 1);
    end(bed, &a);
}
END_TEST

START_TEST(an_answer_comes_late)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    settle(bed);
    conn_write(a->conn, "early", 5);
    settle(bed);
    ck_assert_uint_eq(a->openings, 0);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_str_eq(bed_sent(bed_accept(server, a)), "early");
    end(bed, &a);
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
    struct bed *bed = bed_set_up(&fake_edge, 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer(server, SIM_REFUSES, refusal->error);
    sim_server_answer_at_once(server, (size_t)_i >= countof(refusals));
    a = bed_connect(bed, NULL);
    conn_write(a->conn, "for nobody", 10);
    ck_assert_uint_eq(a->closings, 0); /* no callback within the call */
    settle(bed);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, refusal->reason);
    ck_assert_ptr_nonnull(strstr(bed_logged(bed), "connect() failed"));
    end(bed, &a);
}
END_TEST

static void time_out(struct owner *owner)
{
    conn_fail(owner->conn, FB_TIMED_OUT);
}

START_TEST(a_silent_server_is_its_owners_to_give_up)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct sim_server *server = bed_server();
    const struct owner like = { .expired = time_out };
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, &like);
    timer_set(&bed->net.loop, &a->conn->timer, 1000);
    settle(bed);
    bed_pass(bed, 999);
    ck_assert_uint_eq(a->closings, 0);
    bed_pass(bed, 1);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_TIMED_OUT);
    end(bed, &a);
}
END_TEST

static size_t forward(struct owner *owner, fb_bytes in)
{
    conn_write(owner->other->conn, in.p, in.n);
    return in.n;
}

/* What was borrowed from another's input does not stay there until the server answers. */
START_TEST(borrowed_output_waits_in_memory_of_its_own)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 3);
    struct sim_server *server = bed_server();
    struct owner *a, *client = bed_open(bed), *noise = bed_open(bed);

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    client->data = forward;
    client->other = a;
    fake_says(client->socket, "what the client said");
    bed_run(bed);
    fake_says(noise->socket, "xxxxxxxxxxxxxxxxxxxxxxx");
    bed_run(bed);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(bed_accept(server, a)), "what the client said");
    net_fail_all(&bed->net, FB_DRAINED);
    bed_free(&client);
    bed_free(&noise);
    end(bed, &a);
}
END_TEST

static void count(void *n)
{
    ++*(unsigned *)n;
}

START_TEST(early_output_of_all_kinds_and_an_early_end)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct sim_server *server = bed_server();
    int fd = memfd_create("file", MFD_CLOEXEC);
    unsigned releases = 0;
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    ck_assert_int_eq(write(fd, "file", 4), 4);
    conn_write_file(a->conn, fd, 0, 4);
    conn_write_ref(a->conn, "memory", 6, count, &releases);
    conn_push(a->conn);
    settle(bed);
    ck_assert_uint_eq(releases, 0);
    conn_shutdown(a->conn);
    settle(bed);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(bed_accept(server, a)), "filememory");
    ck_assert_uint_eq(releases, 1);
    ck_assert(a->socket->shut);
    ck_assert_uint_eq(a->openings, 1);
    fake_end(a->socket);
    bed_run(bed);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end(bed, &a);
}
END_TEST

START_TEST(a_close_before_the_answer)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct sim_server *server = bed_server();
    struct owner *a;
    bool abort = _i / BED_MECHANISMS;

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    settle(bed);
    if (abort)
        conn_fail(a->conn, FB_ABORTED);
    else
        conn_close(a->conn);
    settle(bed);
    ck_assert_uint_eq(a->openings, 0);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, abort ? FB_ABORTED : FB_FINISHED);
    end(bed, &a);
}
END_TEST

/* "Sends what is still unsent, then closes." */
START_TEST(a_close_before_the_answer_sends_what_was_written)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer(server, _i / BED_MECHANISMS ? SIM_ACCEPTS : SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle(bed);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(bed_accept(server, a)), "note");
    ck_assert_uint_eq(a->openings, 0); /* it was over for its owner */
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_int_eq(a->reason, FB_FINISHED);
    ck_assert(a->socket->closed && !a->socket->reset);
    end(bed, &a);
}
END_TEST

START_TEST(a_close_at_once_whose_output_waits)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer_at_once(server, true);
    a = bed_connect(bed, NULL);
    fake_take(bed_accept(server, a)->socket, 2);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle(bed);
    ck_assert_uint_eq(a->closings, 0);
    ck_assert_uint_eq(a->openings, 0);
    fake_take(a->socket, 2);
    bed_run(bed);
    ck_assert_str_eq(bed_sent(a), "note");
    ck_assert_int_eq(a->reason, FB_FINISHED);
    end(bed, &a);
}
END_TEST

START_TEST(the_refusal_of_one_that_was_closed)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 1);
    struct sim_server *server = bed_server();
    struct owner *a;

    sim_server_answer(server, SIM_SILENT, 0);
    a = bed_connect(bed, NULL);
    conn_write(a->conn, "note", 4);
    conn_close(a->conn);
    settle(bed);
    sim_server_answer(server, SIM_REFUSES, 0);
    bed_run(bed);
    ck_assert_int_eq(a->reason, FB_REFUSED);
    ck_assert_uint_eq(a->closings, 1);
    bed_logged(bed);
    end(bed, &a);
}
END_TEST

static void stop(struct owner *owner)
{
    conn_stop(owner->conn);
}

START_TEST(stopped_before_it_is_connected)
{
    const struct owner like = { .opened = _i / BED_MECHANISMS ? stop : NULL };
    struct bed *bed = bed_set_up(bed_mechanisms[_i % BED_MECHANISMS], 1);
    struct sim_server *server = bed_server();
    struct owner *a = bed_connect(bed, &like);

    if (like.opened == NULL)
        conn_stop(a->conn);
    settle(bed);
    fake_says(bed_accept(server, a)->socket, "banner");
    bed_run(bed);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_uint_eq(a->datas, 0);
    conn_resume(a->conn);
    settle(bed);
    ck_assert_uint_eq(a->datas, 1);
    end(bed, &a);
}
END_TEST

START_TEST(slots_and_gauges)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 3);
    struct sim_server *server = bed_server();
    struct owner *client = bed_open(bed), *a, *b, *none;

    a = bed_connect(bed, NULL);
    sim_server_answer(server, SIM_SILENT, 0);
    b = bed_connect(bed, NULL);
    settle(bed);
    ck_assert_uint_eq(bed->net.connection_n, 3);
    ck_assert_uint_eq(bed->net.client_n, 1);
    ck_assert_uint_eq(bed_count(bed, COUNTER_ACTIVE), 1);
    none = bed_connect(bed, NULL);
    ck_assert_ptr_null(none->conn);
    free(none);
    settle(bed);

    /* what waits at a server is no client's */
    fake_take(bed_accept(server, a)->socket, 0);
    a->data = bed_leave;
    conn_write(a->conn, "unsent", 6);
    fake_says(a->socket, "unconsumed");
    settle(bed);
    ck_assert_uint_eq(bed_count(bed, COUNTER_WRITING), 0);
    ck_assert_uint_eq(bed_count(bed, COUNTER_READING), 0);

    bed->released = 0;
    conn_fail(a->conn, FB_ABORTED);
    conn_fail(b->conn, FB_ABORTED);
    settle(bed);
    ck_assert_uint_eq(bed->released, 2);
    ck_assert_uint_eq(bed->net.connection_n, 1);
    ck_assert_uint_eq(bed->net.client_n, 1);
    bed_free(&a);
    bed_free(&b);
    end(bed, &client);
}
END_TEST

static void connect_again(struct owner *owner)
{
    if (owner->n > 0)
        owner->other = bed_connect(owner->bed, NULL);
}

START_TEST(a_refused_one_is_tried_again_in_its_place)
{
    struct bed *bed = bed_set_up(bed_mechanisms[_i], 2);
    struct sim_server *server = bed_server();
    const struct owner like = { .closed = connect_again, .n = 1 };
    struct owner *a, *b;

    sim_server_answer(server, SIM_REFUSES, 0);
    sim_server_answer_at_once(server, true);
    a = bed_connect(bed, &like);
    settle(bed);
    b = a->other;
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq(b->reason, FB_REFUSED);
    ck_assert_uint_eq(sim_server_tries(server), 2);
    bed_logged(bed);
    bed_free(&b);
    end(bed, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_server_accepts, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(tcase, an_answer_comes_late, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_server_refuses, 0, 2 * (int)countof(refusals));
    tcase_add_loop_test(tcase, a_silent_server_is_its_owners_to_give_up, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, borrowed_output_waits_in_memory_of_its_own, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, early_output_of_all_kinds_and_an_early_end, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_close_before_the_answer, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(
        tcase, a_close_before_the_answer_sends_what_was_written, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_close_at_once_whose_output_waits, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, the_refusal_of_one_that_was_closed, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, stopped_before_it_is_connected, 0, 2 * BED_MECHANISMS);
    tcase_add_loop_test(tcase, slots_and_gauges, 0, BED_MECHANISMS);
    tcase_add_loop_test(tcase, a_refused_one_is_tried_again_in_its_place, 0, BED_MECHANISMS);
}

TEST_MAIN("conn_connect", add_tests)

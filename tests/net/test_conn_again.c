/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects without a descriptor left: the next turn tries once more, after any act on the
 * connection meanwhile. */
#include "base/compiler.h"
#include "support/owner.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int shortages[] = { EMFILE, ENFILE };

/* A connect waiting for a descriptor, to an accepting server. */
static struct owner *connect_short(struct fixture *fixture, const struct owner *like, int error)
{
    struct owner *owner;

    fixture->sim->connect_error = error;
    owner = owner_connect(fixture, like);
    ck_assert(conn_lacks_descriptor(owner->conn));
    return owner;
}

/* The flush behind the connecting callback. */
static void flush(struct fixture *fixture, const struct owner *owner)
{
    net_flush(fixture->net);
    ck_assert_uint_eq(owner->connects_again, 0);
}

static void end_all(struct fixture *fixture, struct owner **owner)
{
    fixture_end_all(fixture);
    fixture_logged(fixture);
    owner_free(owner);
    fixture_stop(fixture);
}

START_TEST(the_next_turn_has_a_descriptor)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a;

    server->at_once = _i / FIXTURE_EVENTS % 2;
    a = connect_short(fixture, NULL, shortages[_i / (2 * FIXTURE_EVENTS)]);
    flush(fixture, a);
    fixture->sim->connect_error = 0;
    fixture_turn(fixture);
    ck_assert_uint_eq(a->connects_again, 1);
    fixture_run(fixture);
    ck_assert_uint_eq(a->openings, 1);
    ck_assert_uint_eq(server->tries, 1);
    end_all(fixture, &a);
}
END_TEST

START_TEST(the_next_turn_has_none_either)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = connect_short(fixture, NULL, shortages[_i / FIXTURE_EVENTS]);

    flush(fixture, a);
    ck_assert_uint_eq(a->closings, 0);
    fixture_run(fixture);
    ck_assert_uint_eq(a->connects_again, 1);
    ck_assert_int_eq(a->reason, FB_IO_ERROR);
    ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "connect() failed"));
    ck_assert_uint_eq(server->tries, 0);
    end_all(fixture, &a);
}
END_TEST

START_TEST(another_error_is_told_at_once)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct owner *a;

    fixture->sim->connect_error = EACCES;
    a = owner_connect(fixture, NULL);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(a->connects_again, 0);
    ck_assert_int_eq(a->reason, FB_IO_ERROR);
    end_all(fixture, &a);
}
END_TEST

/* ---- What is done to one that waits ---- */

static void count_release(void *n)
{
    ++*(unsigned *)n;
}

static unsigned releases;

static void write_all_kinds(struct owner *a)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    conn_write(a->conn, "little, ", 8);
    ck_assert_int_eq(write(fd, "file, ", 6), 6);
    ck_assert_int_eq(conn_write_file(a->conn, fd, 0, 6), 0);
    ck_assert_int_eq(conn_write_ref(a->conn, "memory", 6, count_release, &releases), 0);
    conn_push(a->conn);
}

static void write_and_shut(struct owner *a)
{
    write_all_kinds(a);
    conn_shutdown(a->conn);
}

static void close_with_output(struct owner *a)
{
    write_all_kinds(a);
    conn_close(a->conn);
}

static void close_alone(struct owner *a)
{
    conn_close(a->conn);
}

static void abort_with_output(struct owner *a)
{
    write_all_kinds(a);
    owner_abort(a);
}

static void keep(struct owner *a)
{
    conn_keep(a->conn);
}

static void stop_and_resume(struct owner *a)
{
    conn_stop(a->conn);
    conn_resume(a->conn);
}

static const struct {
    void (*act)(struct owner *owner);
    const char *sent; /* by the time of the server's accept; NULL: never accepted */
    bool opens;
    fb_reason with, without; /* with a descriptor in the next turn, and without one */
} acts[] = {
    { write_all_kinds, "little, file, memory", true, 0, FB_IO_ERROR },
    { write_and_shut, "little, file, memory", true, 0, FB_IO_ERROR },
    { close_with_output, "little, file, memory", false, FB_FINISHED, FB_IO_ERROR },
    { close_alone, NULL, false, FB_FINISHED, FB_FINISHED },
    { abort_with_output, NULL, false, FB_ABORTED, FB_ABORTED },
    { owner_abort, NULL, false, FB_ABORTED, FB_ABORTED },
    { keep, NULL, false, FB_FINISHED, FB_FINISHED },
    { stop_and_resume, "", true, 0, FB_IO_ERROR },
};

#define ACTS ((int)countof(acts))

/* The connection is used in the callback that has connected, before the next turn, or in both. */
enum moment { WITHIN, BEHIND, MOMENTS };

START_TEST(whatever_is_done_meanwhile)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 1);
    enum moment moment = _i / FIXTURE_EVENTS % MOMENTS;
    bool has_descriptor = _i / FIXTURE_EVENTS / MOMENTS % 2;
    int act = _i / FIXTURE_EVENTS / MOMENTS / 2;
    bool gives_up = acts[act].with == acts[act].without;
    struct sim_server *server = owner_server(fixture);
    struct owner *a = connect_short(fixture, NULL, EMFILE);

    releases = 0;
    if (moment == BEHIND)
        flush(fixture, a);
    acts[act].act(a);
    flush(fixture, a);
    if (has_descriptor)
        fixture->sim->connect_error = 0;
    fixture_run(fixture);
    ck_assert_uint_eq(a->connects_again, !gives_up);
    ck_assert_int_eq(a->reason, has_descriptor ? acts[act].with : acts[act].without);
    ck_assert_uint_eq(a->openings, has_descriptor && acts[act].opens);
    ck_assert_uint_eq(server->tries, has_descriptor && !gives_up);
    if (has_descriptor && acts[act].sent != NULL)
        ck_assert_str_eq(owner_sent(owner_accept(server, a)), acts[act].sent);
    end_all(fixture, &a);
}
END_TEST

/* A connection stopped before the connect() is not read until resumed. */
START_TEST(stopped_meanwhile)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    struct sim_server *server = owner_server(fixture);
    struct owner *a = connect_short(fixture, NULL, EMFILE);

    conn_stop(a->conn);
    flush(fixture, a);
    fixture->sim->connect_error = 0;
    fixture_run(fixture);
    ck_assert_uint_eq(a->openings, 1);
    sim_says(owner_accept(server, a)->socket, "early");
    fixture_run(fixture);
    ck_assert_uint_eq(a->datas, 0);
    ck_assert(!a->conn->source.events[EVENT_READ].armed);
    conn_resume(a->conn);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_str_eq(a->last, "early");
    end_all(fixture, &a);
}
END_TEST

/* Piped with a client that speaks meanwhile, or goes. */
START_TEST(piped_meanwhile)
{
    struct fixture *fixture = fixture_start_net(_i % FIXTURE_EVENTS, 2);
    bool swapped = _i / FIXTURE_EVENTS % 2, ends = _i / FIXTURE_EVENTS / 2 % 2;
    bool has_descriptor = _i / FIXTURE_EVENTS / 4;
    struct sim_server *server = owner_server(fixture);
    struct owner *client = owner_open(fixture), *a = connect_short(fixture, NULL, EMFILE);

    conn_deadline_set(a->conn, 60000);
    conn_write(a->conn, "header, ", 8);
    ck_assert_int_eq(owner_pipe(swapped ? client : a, swapped ? a : client, 1000), 0);
    flush(fixture, a);
    sim_says(client->socket, "request");
    if (ends)
        sim_end(client->socket);
    if (has_descriptor)
        fixture->sim->connect_error = 0;
    fixture_run(fixture);
    ck_assert_uint_eq(a->connects_again, 1);
    if (has_descriptor) {
        ck_assert_str_eq(owner_sent(owner_accept(server, a)), "header, request");
        ck_assert(a->socket->shut == ends);
        fixture_pass(fixture, 1000);
    } else {
        ck_assert_ptr_nonnull(strstr(fixture_logged(fixture), "connect() failed"));
    }
    ck_assert_int_eq(a->reason, has_descriptor ? FB_TIMED_OUT : FB_IO_ERROR);
    ck_assert_int_eq(client->reason, has_descriptor ? FB_TIMED_OUT : FB_PIPE_BROKEN);
    owner_free(&client);
    end_all(fixture, &a);
}
END_TEST

/* ---- Beside others ---- */

static const char bytes[] = "from where it is";

/* A release writing to its own connection, and to the waiting connection. */
static void write_to_both(void *arg)
{
    struct owner *owner = arg;

    if (owner->n == 0)
        return;
    owner->n--;
    ck_assert_int_eq(conn_write_ref(owner->conn, bytes, sizeof(bytes), write_to_both, owner), 0);
    conn_write(owner->other->conn, "x", 1);
}

/* A flush left to the next turn does not change a flush that waits for a descriptor. */
START_TEST(a_flush_without_an_end_leaves_it)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct owner *greedy = owner_open(fixture), *a = connect_short(fixture, NULL, EMFILE);
    char expected[32] = "";

    greedy->other = a;
    greedy->n = 20;
    memset(expected, 'x', greedy->n);
    write_to_both(greedy);
    flush(fixture, a);
    ck_assert_uint_gt(greedy->n, 0); /* more is left for the next turn */
    ck_assert_uint_eq(a->closings, 0);
    ck_assert(conn_lacks_descriptor(a->conn));
    fixture->sim->connect_error = 0;
    fixture_run(fixture);
    ck_assert_uint_eq(a->connects_again, 1);
    ck_assert_str_eq(owner_sent(owner_accept(server, a)), expected);
    fixture_end_all(fixture);
    owner_free(&greedy);
    end_all(fixture, &a);
}
END_TEST

/* The connect's timeout passes during the wait, as in a stopped worker. */
static void give_up(struct owner *owner)
{
    conn_connect_failed(owner->conn, ETIMEDOUT, IO_CONNECT);
}

START_TEST(its_time_is_over_meanwhile)
{
    struct fixture *fixture = fixture_start_net(_i, 1);
    const struct owner like = { .expired = give_up };
    struct owner *a = connect_short(fixture, &like, EMFILE);

    conn_deadline_set(a->conn, 1);
    flush(fixture, a);
    fixture_pass(fixture, 5);
    ck_assert_uint_eq(a->closings, 1);
    ck_assert_uint_eq(a->openings, 0);
    end_all(fixture, &a);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const int n = FIXTURE_EVENTS;

    tcase_add_loop_test(tcase, the_next_turn_has_a_descriptor, 0, 4 * n);
    tcase_add_loop_test(tcase, the_next_turn_has_none_either, 0, 2 * n);
    tcase_add_loop_test(tcase, another_error_is_told_at_once, 0, n);
    tcase_add_loop_test(tcase, whatever_is_done_meanwhile, 0, ACTS * 2 * MOMENTS * n);
    tcase_add_loop_test(tcase, stopped_meanwhile, 0, n);
    tcase_add_loop_test(tcase, piped_meanwhile, 0, 8 * n);
    tcase_add_loop_test(tcase, a_flush_without_an_end_leaves_it, 0, n);
    tcase_add_loop_test(tcase, its_time_is_over_meanwhile, 0, n);
}

TEST_MAIN("conn_again", add_tests)

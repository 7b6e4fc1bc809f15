/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes of a program that a simulation notices, and goes on after. */
#include "support/watched.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BAD_FD 1000077

static const char *fault_text(const struct sim *sim, unsigned i)
{
    const struct sim_fault *fault;

    STAILQ_FOREACH (fault, &sim->faults, link)
        if (i-- == 0)
            return fault->text;
    return NULL;
}

static void receive_closed(struct fixture *fixture)
{
    ck_assert_int_eq(watched_recv(watched_create(fixture, BAD_FD), fixture, 1).error, EBADF);
}

static void send_closed(struct fixture *fixture)
{
    ck_assert_int_eq(watched_send(watched_create(fixture, BAD_FD), fixture, 1).error, EBADF);
}

static void close_twice(struct fixture *fixture)
{
    struct sim_socket *socket = sim_connection(fixture->sim);
    struct source first = watched_create(fixture, socket->fd)->source, second = first;

    first.io->close(&first, false);
    ck_assert_int_eq(first.fd, -1);
    ck_assert_uint_eq(fixture->sim->fault_n, 0);
    second.io->close(&second, false);
    ck_assert_int_eq(second.fd, -1);
}

static void close_watched(struct fixture *fixture)
{
    struct watched *watched = watched_create_armed(fixture, sim_connection(fixture->sim)->fd);

    watched->source.io->close(&watched->source, false);
    ck_assert(sim_idle(fixture->loop));
}

static void watch_closed(struct fixture *fixture)
{
    struct watched *watched = watched_create(fixture, BAD_FD);

    ck_assert_int_eq(source_arm(fixture->loop, &watched->source, EVENT_READ), -1);
    ck_assert_int_eq(errno, EBADF);
}

static void leave_unwatched(struct fixture *fixture)
{
    struct watched *watched = watched_create(fixture, sim_connection(fixture->sim)->fd);

    fixture->loop->mechanism->del_conn(fixture->loop, &watched->source, false);
    watched->source.io->close(&watched->source, false);
}

static void send_behind_the_end(struct fixture *fixture)
{
    struct watched *watched = watched_create(fixture, sim_connection(fixture->sim)->fd);

    ck_assert_int_eq(watched->source.io->shutdown(&watched->source).status, IO_DONE);
    ck_assert_int_eq(watched_send(watched, "x", 1).error, EPIPE);
    watched->source.io->close(&watched->source, false);
}

static void send_nothing(struct fixture *fixture)
{
    struct watched *watched = watched_create(fixture, sim_connection(fixture->sim)->fd);

    ck_assert_int_eq(watched_send(watched, "", 0).error, EINVAL);
    watched->source.io->close(&watched->source, false);
}

static void receive_without_room(struct fixture *fixture)
{
    struct watched *watched = watched_create(fixture, sim_connection(fixture->sim)->fd);

    ck_assert_int_eq(watched_recv(watched, NULL, 0).status, IO_AGAIN_READ);
    watched->source.io->close(&watched->source, false);
}

static void connect_twice(struct fixture *fixture)
{
    struct sockaddr address = { .sa_family = AF_UNIX };
    struct watched *watched = watched_create(fixture, -1);
    struct source first;

    watched->source.io->connect(&watched->source, &address, sizeof(address), NULL);
    first = watched->source;
    watched->source.io->connect(&watched->source, &address, sizeof(address), NULL);
    first.io->close(&first, false);
    watched->source.io->close(&watched->source, false);
}

static void leave_open(struct fixture *fixture)
{
    struct sim_socket *listener = sim_listener(fixture->sim, -1);
    struct source source = watched_create(fixture, listener->fd)->source;
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int fd;

    sim_client(listener); /* never accepted: the simulation's client, not the program's */
    sim_client(listener);
    source.io->accept(&source, &fd, (struct sockaddr *)&peer, &length);
    sim_check_closed(fixture->sim);
    sim_check_closed(fixture->sim); /* reported once */
}

static const struct {
    void (*act)(struct fixture *fixture);
    int fd;
    const char *text;
} misdeeds[] = {
    { receive_closed, BAD_FD, "recv() although not open" },
    { send_closed, BAD_FD, "send() although not open" },
    { close_twice, 1000000, "close() although not open" },
    { close_watched, 1000000, "close() while watched" },
    { watch_closed, BAD_FD, "is watched although not open" },
    { leave_unwatched, 1000000, "is watched no more, and was not" },
    { send_behind_the_end, 1000000, "send() after shutdown()" },
    { send_nothing, 1000000, "send() of 0 bytes in 1 pieces" },
    { receive_without_room, 1000000, "recv() without room" },
    { connect_twice, 1000000, "connect() of a source with a descriptor" },
    { leave_open, 1000001, "was not closed" },
};

static char called[256];

static void remember_fault(void *arg, const char *text)
{
    ck_assert_ptr_eq(arg, called);
    snprintf(called, sizeof(called), "%s", text);
}

/* Puts back the sources left by the misdeed. */
static void drop_sources(struct fixture *fixture)
{
    struct source_table *table = &fixture->loop->sources;

    for (uint32_t i = 0; i < table->used_n; i++) {
        struct source *source = source_at(table, i);

        source->fd = -1;
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
            source->events[direction].active = false;
        source_put(table, source);
    }
}

START_TEST(a_misdeed_is_noticed)
{
    struct fixture *fixture = fixture_start_loop(4);
    char expected[256];

    fixture->sim->on_fault = remember_fault;
    fixture->sim->fault_arg = called;
    misdeeds[_i].act(fixture);
    snprintf(expected, sizeof(expected), "descriptor %d: %s", misdeeds[_i].fd, misdeeds[_i].text);
    ck_assert_uint_eq(fixture->sim->fault_n, 1);
    ck_assert_str_eq(fault_text(fixture->sim, 0), expected);
    ck_assert_ptr_null(fault_text(fixture->sim, 1));
    ck_assert_str_eq(called, expected);
    drop_sources(fixture);
    fixture_stop(fixture);
}
END_TEST

static unsigned calls;

static void count_fault(void *arg, const char *text)
{
    (void)arg;
    (void)text;
    calls++;
}

START_TEST(what_is_left_at_the_end_is_noticed)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct sim *sim = fixture->sim;

    sim->on_fault = count_fault;
    watched_create_armed(fixture, sim_connection(sim)->fd);
    drop_sources(fixture);
    fixture_stop_loop(fixture);
    ck_assert_uint_eq(calls, 1);
    ck_assert_str_eq(fault_text(sim, 0), "descriptor 1000000: is watched at the loop's end");
    sim_destroy(&sim);
    ck_assert_uint_eq(calls, 2); /* a descriptor was never closed */
}
END_TEST

START_TEST(a_refused_watch_is_no_fault)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct watched *watched = watched_create(fixture, sim_connection(fixture->sim)->fd);

    fixture->sim->watch_error = ENOSPC;
    ck_assert_int_eq(source_arm_both(fixture->loop, &watched->source), -1);
    ck_assert_int_eq(errno, ENOSPC);
    fixture->sim->watch_error = 0;
    ck_assert_int_eq(source_arm_both(fixture->loop, &watched->source), 0);
    watched_close(fixture, &watched);
    ck_assert_uint_eq(fixture->sim->fault_n, 0);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_misdeed_is_noticed, 0, (int)countof(misdeeds));
    tcase_add_test(tcase, what_is_left_at_the_end_is_noticed);
    tcase_add_test(tcase, a_refused_watch_is_no_fault);
}

TEST_MAIN("sim_faults", add_tests)

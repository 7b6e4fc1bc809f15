/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation itself: time, sockets, and the mistakes it notices. */
#include "support/watched.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned expirations;

static void note_expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
    expirations++;
}

START_TEST(time_stands_still_by_itself)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct clock before = fixture->loop->clock;
    struct timer timer = { .expired = note_expired };

    timer_set(fixture->loop, &timer, 10000);
    fixture_turn_waiting(fixture, 500);
    fixture_turn_waiting(fixture, -1); /* no hang */
    ck_assert_uint_eq(fixture->loop->clock.mono_ms, before.mono_ms);
    ck_assert(sim_idle(fixture->loop));
    sim_pass(fixture->sim, 10000);
    ck_assert_uint_eq(fixture->sim->clock.mono_ms, before.mono_ms + 10000);
    ck_assert(!sim_idle(fixture->loop)); /* a timer is due */
    fixture_turn_waiting(fixture, -1);
    ck_assert_uint_eq(fixture->loop->clock.mono_ms, before.mono_ms + 10000);
    ck_assert_int_eq(fixture->loop->clock.wall_ms, before.wall_ms + 10000);
    ck_assert_uint_eq(expirations, 1);
    fixture_stop(fixture);
}
END_TEST

START_TEST(time_passes_by_itself_while_nothing_happens)
{
    struct fixture *fixture = fixture_start_loop(2);
    struct loop *loop = fixture->loop;
    struct sim_socket *socket = sim_connection(fixture->sim);
    struct watched *watched = watched_create_armed(fixture, socket->fd);
    uint64_t start = loop->clock.mono_ms;
    struct timer timer = { .expired = note_expired };

    fixture->sim->auto_time = true;
    fixture_turn_waiting(fixture, 100); /* output has room */
    ck_assert_uint_eq(loop->clock.mono_ms, start);
    fixture_turn_waiting(fixture, 100);
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    fixture_turn_waiting(fixture, -1); /* until nothing */
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    timer_set(loop, &timer, 12345);
    sim_says(socket, "x");
    fixture_turn_waiting(fixture, -1);
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    fixture_turn_waiting(fixture, -1); /* until the timer */
    ck_assert_uint_eq(loop->clock.mono_ms, start + 12445);
    ck_assert_uint_eq(expirations, 1);
    watched_close(fixture, &watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(the_wall_clock_can_be_set)
{
    struct fixture *fixture = fixture_start_loop(1);
    uint64_t start = fixture->loop->clock.mono_ms;

    fixture->sim->clock.wall_ms = 86400000;
    sim_pass(fixture->sim, 5);
    loop_wait(fixture->loop, 0);
    ck_assert_int_eq(fixture->loop->clock.wall_ms, 86400005);
    ck_assert_uint_eq(fixture->loop->clock.mono_ms, start + 5);
    fixture_stop(fixture);
}
END_TEST

static unsigned told;

static void count_notice(struct loop *loop)
{
    (void)loop;
    told++;
}

static void *notify_loop(void *arg)
{
    struct loop *loop = arg;

    return loop->mechanism->notify(loop) == 0 ? arg : NULL;
}

START_TEST(a_thread_has_the_loop_notified)
{
    struct fixture *fixture = fixture_start_loop(2);
    struct loop *loop = fixture->loop;

    ck_assert_int_eq(loop_set_notified(loop, count_notice), 0);
    ck_assert(sim_idle(loop));
    ck_assert(!sim_await_notice(loop, 0));
    for (unsigned i = 1; i <= 10; i++) {
        pthread_t thread;
        void *result;

        ck_assert_int_eq(pthread_create(&thread, NULL, notify_loop, loop), 0);
        ck_assert(sim_await_notice(loop, 10000));
        ck_assert(!sim_idle(loop));
        fixture_turn_waiting(fixture, -1);
        ck_assert_uint_eq(told, i);
        ck_assert(sim_idle(loop));
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_nonnull(result);
    }
    fixture_stop(fixture);
}
END_TEST

static struct sockaddr_in address_of(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };

    address.sin_addr.s_addr = htonl(0xc0000207);
    return address;
}

static struct io_result connect_to(struct watched *watched, unsigned port)
{
    struct sockaddr_in address = address_of(port);

    return watched->source.io->connect(
        &watched->source, (struct sockaddr *)&address, sizeof(address), NULL);
}

static struct sim_server *add_server(struct fixture *fixture, unsigned port)
{
    struct sockaddr_in address = address_of(port);

    return sim_server(fixture->sim, (struct sockaddr *)&address, sizeof(address));
}

static const struct outcome {
    enum sim_server_answer answer;
    int error;
    bool at_once, there, late; /* late: the answer comes only when it is waited for */
    int told;
} outcomes[] = {
    { SIM_ACCEPTS, 0, .there = true, .told = 0 },
    { SIM_ACCEPTS, 0, .there = true, .at_once = true, .told = 0 },
    { SIM_ACCEPTS, 0, .there = true, .late = true, .told = 0 },
    { SIM_REFUSES, 0, .there = true, .told = ECONNREFUSED },
    { SIM_REFUSES, EHOSTUNREACH, .there = true, .told = EHOSTUNREACH },
    { SIM_REFUSES, ENOENT, .there = true, .at_once = true, .told = ENOENT },
    { SIM_REFUSES, ETIMEDOUT, .there = true, .late = true, .told = ETIMEDOUT },
    { SIM_ACCEPTS, 0, .there = false, .told = ECONNREFUSED },
};

static void check_told(struct io_result result, int error)
{
    ck_assert_int_eq(result.status, error == 0 ? IO_DONE : IO_FAILED);
    ck_assert_int_eq(result.error, error);
}

START_TEST(a_connect_ends_as_its_server_has_it)
{
    const struct outcome *outcome = &outcomes[_i];
    struct fixture *fixture = fixture_start_loop(1);
    struct sim_server *server = add_server(fixture, outcome->there ? 80 : 81);
    struct watched *watched = watched_create(fixture, -1);
    struct source *source = &watched->source;
    struct sim_socket *socket;
    struct io_result result;

    sim_server_answer(server, outcome->late ? SIM_SILENT : outcome->answer, outcome->error);
    server->at_once = outcome->at_once;
    result = connect_to(watched, 80);
    ck_assert_int_ne(source->fd, -1);
    ck_assert_uint_eq(server->tries, outcome->there);
    if (outcome->at_once)
        check_told(result, outcome->told);
    else
        ck_assert_int_eq(result.status, IO_AGAIN_WRITE);
    ck_assert_int_eq(source_arm_both(fixture->loop, source), 0);
    if (outcome->late) {
        fixture_run(fixture);
        ck_assert_uint_eq(watched->runs[EVENT_WRITE], 0);
        ck_assert_int_eq(source->io->connected(source).status, IO_AGAIN_WRITE);
        ck_assert_int_eq(watched_send(watched, "x", 1).status, IO_AGAIN_WRITE);
        ck_assert_int_eq(watched_recv(watched, watched->held, 1).status, IO_AGAIN_READ);
        ck_assert_ptr_null(sim_server_take(server));
        sim_server_answer(server, outcome->answer, outcome->error);
    }
    fixture_run(fixture);
    ck_assert_uint_eq(watched->runs[EVENT_WRITE], 1);
    check_told(source->io->connected(source), outcome->told);
    socket = sim_server_take(server);
    ck_assert(outcome->told == 0 ? socket != NULL && socket->fd == source->fd : socket == NULL);
    ck_assert_ptr_null(sim_server_take(server));
    watched_close(fixture, &watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(who_gives_up_connecting_is_not_served)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct sim_server *server = add_server(fixture, 80);
    struct watched *watched = watched_create(fixture, -1);

    sim_server_answer(server, SIM_SILENT, 0);
    connect_to(watched, 80);
    watched_close(fixture, &watched);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    ck_assert_ptr_null(sim_server_take(server));
    fixture_stop(fixture);
}
END_TEST

START_TEST(both_ends_of_a_connect_talk)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct sim_server *server = add_server(fixture, 80);
    struct watched *watched = watched_create(fixture, -1);
    struct sockaddr_in peer = address_of(80), name;
    socklen_t length = sizeof(name);
    struct sim_socket *far;

    connect_to(watched, 80);
    far = sim_server_take(server);
    ck_assert_mem_eq(&far->peer, &peer, sizeof(peer));
    ck_assert_int_eq(
        watched->source.io->name(&watched->source, (struct sockaddr *)&name, &length), 0);
    ck_assert_uint_eq(length, sizeof(name));
    ck_assert_mem_eq(&far->local, &name, sizeof(name));
    sim_says(far, "welcome");
    ck_assert_uint_eq(watched_recv(watched, watched->held, sizeof(watched->held)).n, 7);
    ck_assert_mem_eq(watched->held, "welcome", 7);
    ck_assert_uint_eq(watched_send(watched, "hello", 5).n, 5);
    ck_assert_str_eq(sim_sent(far), "hello");
    sim_forget_sent(far);
    ck_assert_str_eq(sim_sent(far), "");
    watched_close(fixture, &watched);
    ck_assert(far->closed && !far->reset);
    sim_socket_free(&far);
    ck_assert_ptr_null(far);
    fixture_stop(fixture);
}
END_TEST

START_TEST(files_are_sent)
{
    struct fixture *fixture = fixture_start_loop(1);
    struct sim_socket *socket = sim_connection(fixture->sim);
    struct watched *watched = watched_create(fixture, socket->fd);
    struct source *source = &watched->source;
    int file = memfd_create("file", MFD_CLOEXEC);
    off_t offset = 2;

    ck_assert_int_eq(write(file, "0123456789", 10), 10);
    sim_set_room(socket, 5);
    ck_assert_uint_eq(source->io->sendfile(source, file, &offset, 100).n, 5);
    ck_assert_int_eq(offset, 7);
    ck_assert_int_eq(source->io->sendfile(source, file, &offset, 100).status, IO_AGAIN_WRITE);
    sim_set_room(socket, SIZE_MAX);
    ck_assert_uint_eq(source->io->sendfile(source, file, &offset, 2).n, 2);
    ck_assert_uint_eq(source->io->sendfile(source, file, &offset, 100).n, 1);
    ck_assert_int_eq(source->io->sendfile(source, file, &offset, 100).status, IO_EOF);
    ck_assert_str_eq(sim_sent(socket), "23456789");
    ck_assert_ptr_null(source->io->splice_in);
    ck_assert_ptr_null(source->io->splice_out);
    close(file);
    ck_assert_int_eq(source->io->sendfile(source, file, &offset, 100).error, EBADF);
    watched_close(fixture, &watched);
    fixture_stop(fixture);
}
END_TEST

START_TEST(two_loops_watch_one_listener)
{
    struct fixture *fixture = fixture_start_loop(1),
                   *other = fixture_start_loop_beside(fixture, FIXTURE_LEVEL, 1);
    struct sim_socket *listener = sim_listener(fixture->sim, -1);
    struct watched *one = watched_create(fixture, listener->fd),
                   *two = watched_create(other, listener->fd);
    struct source served = { .io = one->source.io, .io_state = one->source.io_state };
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    ck_assert_int_eq(source_arm_listener(fixture->loop, &one->source, true), 0);
    ck_assert_int_eq(source_arm_listener(other->loop, &two->source, true), 0);
    sim_client(listener);
    ck_assert_uint_eq(listener->waiting, 1);
    fixture_turn(fixture);
    ck_assert_uint_eq(one->runs[EVENT_READ], 1);
    ck_assert(!sim_idle(other->loop));
    served.io->accept(&two->source, &served.fd, (struct sockaddr *)&peer, &length);
    ck_assert_uint_eq(length, sizeof(struct sockaddr_in));
    ck_assert(sim_idle(other->loop));
    fixture_turn(other);
    ck_assert_uint_eq(two->runs[EVENT_READ], 0);
    source_disarm_listener(fixture->loop, &one->source);
    ck_assert(listener->listening);
    source_disarm_listener(other->loop, &two->source);
    ck_assert(!listener->listening);
    served.io->close(&served, false);
    one->source.fd = -1;
    watched_close(fixture, &one);
    watched_close(other, &two);
    fixture_stop_loop(other);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, time_stands_still_by_itself);
    tcase_add_test(tcase, time_passes_by_itself_while_nothing_happens);
    tcase_add_test(tcase, the_wall_clock_can_be_set);
    tcase_add_test(tcase, a_thread_has_the_loop_notified);
    tcase_add_loop_test(tcase, a_connect_ends_as_its_server_has_it, 0, (int)countof(outcomes));
    tcase_add_test(tcase, who_gives_up_connecting_is_not_served);
    tcase_add_test(tcase, both_ends_of_a_connect_talk);
    tcase_add_test(tcase, files_are_sent);
    tcase_add_test(tcase, two_loops_watch_one_listener);
}

TEST_MAIN("sim", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulation itself: its time, its sockets, what it notices. */
#include "event/rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned expirations;

static void expired(struct loop *loop, struct timer *timer)
{
    (void)loop;
    (void)timer;
    expirations++;
}

START_TEST(time_stands_still_by_itself)
{
    struct rig *rig = rig_set_up(1);
    struct clock before = rig->loop.clock;
    struct timer timer = { .expired = expired };

    timer_set(&rig->loop, &timer, 10000);
    rig_turn(rig, 500);
    rig_turn(rig, -1); /* and does not hang */
    ck_assert_uint_eq(rig->loop.clock.mono_ms, before.mono_ms);
    ck_assert(sim_idle(&rig->loop));
    sim_pass(rig->sim, 10000);
    ck_assert_uint_eq(sim_now_ms(rig->sim), before.mono_ms + 10000);
    ck_assert(!sim_idle(&rig->loop)); /* a timer is due */
    rig_turn(rig, -1);
    ck_assert_uint_eq(rig->loop.clock.mono_ms, before.mono_ms + 10000);
    ck_assert_int_eq(rig->loop.clock.wall_ms, before.wall_ms + 10000);
    ck_assert_uint_eq(expirations, 1);
    rig_tear_down(rig);
}
END_TEST

START_TEST(time_passes_by_itself_while_nothing_happens)
{
    struct rig *rig = rig_set_up(2);
    struct loop *loop = &rig->loop;
    struct sim_socket *socket = sim_connection(rig->sim);
    struct thing *thing = rig_watch(rig, socket->fd);
    uint64_t start = loop->clock.mono_ms;
    struct timer timer = { .expired = expired };

    sim_set_auto(rig->sim, true);
    rig_turn(rig, 100); /* there is room for output */
    ck_assert_uint_eq(loop->clock.mono_ms, start);
    rig_turn(rig, 100);
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    rig_turn(rig, -1); /* until nothing */
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    timer_set(loop, &timer, 12345);
    sim_says(socket, "x");
    rig_turn(rig, -1);
    ck_assert_uint_eq(loop->clock.mono_ms, start + 100);
    rig_turn(rig, -1); /* until the timer */
    ck_assert_uint_eq(loop->clock.mono_ms, start + 12445);
    ck_assert_uint_eq(expirations, 1);
    rig_close(rig, &thing);
    rig_tear_down(rig);
}
END_TEST

START_TEST(the_wall_clock_can_be_set)
{
    struct rig *rig = rig_set_up(1);
    uint64_t start = rig->loop.clock.mono_ms;

    sim_set_wall(rig->sim, 86400000);
    sim_pass(rig->sim, 5);
    loop_wait(&rig->loop, 0);
    ck_assert_int_eq(rig->loop.clock.wall_ms, 86400005);
    ck_assert_uint_eq(rig->loop.clock.mono_ms, start + 5);
    rig_tear_down(rig);
}
END_TEST

static unsigned told;

static void notified(struct loop *loop)
{
    (void)loop;
    told++;
}

static void *notify(void *arg)
{
    struct loop *loop = arg;

    return loop->mechanism->notify(loop) == 0 ? arg : NULL;
}

START_TEST(a_thread_has_the_loop_notified)
{
    struct rig *rig = rig_set_up(2);
    struct loop *loop = &rig->loop;

    ck_assert_int_eq(loop_set_notified(loop, notified), 0);
    ck_assert(sim_idle(loop));
    ck_assert(!sim_await_notice(loop, 0));
    for (unsigned i = 1; i <= 10; i++) {
        pthread_t thread;
        void *result;

        ck_assert_int_eq(pthread_create(&thread, NULL, notify, loop), 0);
        ck_assert(sim_await_notice(loop, 10000));
        ck_assert(!sim_idle(loop));
        rig_turn(rig, -1);
        ck_assert_uint_eq(told, i);
        ck_assert(sim_idle(loop));
        ck_assert_int_eq(pthread_join(thread, &result), 0);
        ck_assert_ptr_nonnull(result);
    }
    rig_tear_down(rig);
}
END_TEST

static struct sockaddr_in address_of(unsigned port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((in_port_t)port) };

    address.sin_addr.s_addr = htonl(0xc0000207);
    return address;
}

static struct io_result connect_to(struct thing *thing, unsigned port)
{
    struct sockaddr_in address = address_of(port);

    return thing->source.io->connect(&thing->source, (struct sockaddr *)&address, sizeof(address));
}

static struct sim_server *serve(struct rig *rig, unsigned port)
{
    struct sockaddr_in address = address_of(port);

    return sim_server(rig->sim, (struct sockaddr *)&address, sizeof(address));
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
    struct rig *rig = rig_set_up(1);
    struct sim_server *server = serve(rig, outcome->there ? 80 : 81);
    struct thing *thing = rig_thing(rig, -1);
    struct source *source = &thing->source;
    struct sim_socket *socket;
    struct io_result result;

    sim_server_answer(server, outcome->late ? SIM_SILENT : outcome->answer, outcome->error);
    sim_server_answer_at_once(server, outcome->at_once);
    result = connect_to(thing, 80);
    ck_assert_int_ne(source->fd, -1);
    ck_assert_uint_eq(sim_server_tries(server), outcome->there);
    if (outcome->at_once)
        check_told(result, outcome->told);
    else
        ck_assert_int_eq(result.status, IO_AGAIN_WRITE);
    ck_assert_int_eq(source_arm_both(&rig->loop, source), 0);
    if (outcome->late) {
        rig_run(rig);
        ck_assert_uint_eq(thing->runs[EVENT_WRITE], 0);
        ck_assert_int_eq(source->io->connected(source).status, IO_AGAIN_WRITE);
        ck_assert_int_eq(rig_send(thing, "x", 1).status, IO_AGAIN_WRITE);
        ck_assert_int_eq(rig_recv(thing, thing->held, 1).status, IO_AGAIN_READ);
        ck_assert_ptr_null(sim_server_take(server));
        sim_server_answer(server, outcome->answer, outcome->error);
    }
    rig_run(rig);
    ck_assert_uint_eq(thing->runs[EVENT_WRITE], 1);
    check_told(source->io->connected(source), outcome->told);
    socket = sim_server_take(server);
    ck_assert(outcome->told == 0 ? socket != NULL && socket->fd == source->fd : socket == NULL);
    ck_assert_ptr_null(sim_server_take(server));
    rig_close(rig, &thing);
    rig_tear_down(rig);
}
END_TEST

START_TEST(who_gives_up_connecting_is_not_served)
{
    struct rig *rig = rig_set_up(1);
    struct sim_server *server = serve(rig, 80);
    struct thing *thing = rig_thing(rig, -1);

    sim_server_answer(server, SIM_SILENT, 0);
    connect_to(thing, 80);
    rig_close(rig, &thing);
    sim_server_answer(server, SIM_ACCEPTS, 0);
    ck_assert_ptr_null(sim_server_take(server));
    rig_tear_down(rig);
}
END_TEST

START_TEST(both_ends_of_a_connect_talk)
{
    struct rig *rig = rig_set_up(1);
    struct sim_server *server = serve(rig, 80);
    struct thing *thing = rig_thing(rig, -1);
    struct sockaddr_in peer = address_of(80), name;
    socklen_t length = sizeof(name);
    struct sim_socket *far;

    connect_to(thing, 80);
    far = sim_server_take(server);
    ck_assert_mem_eq(&far->peer, &peer, sizeof(peer));
    ck_assert_int_eq(thing->source.io->name(&thing->source, (struct sockaddr *)&name, &length), 0);
    ck_assert_uint_eq(length, sizeof(name));
    ck_assert_mem_eq(&far->local, &name, sizeof(name));
    sim_says(far, "welcome");
    ck_assert_uint_eq(rig_recv(thing, thing->held, sizeof(thing->held)).n, 7);
    ck_assert_mem_eq(thing->held, "welcome", 7);
    ck_assert_uint_eq(rig_send(thing, "hello", 5).n, 5);
    ck_assert_str_eq(sim_sent(far), "hello");
    sim_forget_sent(far);
    ck_assert_str_eq(sim_sent(far), "");
    rig_close(rig, &thing);
    ck_assert(far->closed && !far->reset);
    sim_socket_free(&far);
    ck_assert_ptr_null(far);
    rig_tear_down(rig);
}
END_TEST

START_TEST(files_are_sent)
{
    struct rig *rig = rig_set_up(1);
    struct sim_socket *socket = sim_connection(rig->sim);
    struct thing *thing = rig_thing(rig, socket->fd);
    struct source *source = &thing->source;
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
    rig_close(rig, &thing);
    rig_tear_down(rig);
}
END_TEST

START_TEST(two_loops_watch_one_listener)
{
    struct rig *rig = rig_set_up(1), *other = rig_beside(rig, 1, false);
    struct sim_socket *listener = sim_listener(rig->sim, -1);
    struct thing *one = rig_thing(rig, listener->fd), *two = rig_thing(other, listener->fd);
    struct source served = { .io = one->source.io, .io_state = one->source.io_state };
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    ck_assert_int_eq(source_arm_listener(&rig->loop, &one->source, true), 0);
    ck_assert_int_eq(source_arm_listener(&other->loop, &two->source, true), 0);
    sim_client(listener);
    ck_assert_uint_eq(sim_waiting_clients(listener), 1);
    rig_turn(rig, 0);
    ck_assert_uint_eq(one->runs[EVENT_READ], 1);
    ck_assert(!sim_idle(&other->loop));
    served.io->accept(&two->source, &served.fd, (struct sockaddr *)&peer, &length);
    ck_assert_uint_eq(length, sizeof(struct sockaddr_in));
    ck_assert(sim_idle(&other->loop));
    rig_turn(other, 0);
    ck_assert_uint_eq(two->runs[EVENT_READ], 0);
    source_disarm_listener(&rig->loop, &one->source);
    ck_assert(listener->listening);
    source_disarm_listener(&other->loop, &two->source);
    ck_assert(!listener->listening);
    served.io->close(&served, false);
    one->source.fd = -1;
    rig_close(rig, &one);
    rig_close(other, &two);
    rig_tear_down_loop(other);
    rig_tear_down(rig);
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

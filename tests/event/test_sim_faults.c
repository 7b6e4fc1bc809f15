/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program does wrong, a simulation notices; and it goes on. */
#include "event/rig.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define BAD_FD 1000077

static void receive_closed(struct rig *rig)
{
    ck_assert_int_eq(rig_recv(rig_thing(rig, BAD_FD), rig, 1).error, EBADF);
}

static void send_closed(struct rig *rig)
{
    ck_assert_int_eq(rig_send(rig_thing(rig, BAD_FD), rig, 1).error, EBADF);
}

static void close_twice(struct rig *rig)
{
    struct sim_socket *socket = sim_connection(rig->sim);
    struct source first = rig_thing(rig, socket->fd)->source, second = first;

    first.io->close(&first, false);
    ck_assert_int_eq(first.fd, -1);
    ck_assert_uint_eq(sim_faults(rig->sim), 0);
    second.io->close(&second, false);
    ck_assert_int_eq(second.fd, -1);
}

static void close_watched(struct rig *rig)
{
    struct thing *thing = rig_watch(rig, sim_connection(rig->sim)->fd);

    thing->source.io->close(&thing->source, false);
    ck_assert(sim_idle(&rig->loop));
}

static void watch_closed(struct rig *rig)
{
    struct thing *thing = rig_thing(rig, BAD_FD);

    ck_assert_int_eq(source_arm(&rig->loop, &thing->source, EVENT_READ), -1);
    ck_assert_int_eq(errno, EBADF);
}

static void leave_unwatched(struct rig *rig)
{
    struct thing *thing = rig_thing(rig, sim_connection(rig->sim)->fd);

    rig->loop.mechanism->del_conn(&rig->loop, &thing->source, false);
    thing->source.io->close(&thing->source, false);
}

static void send_behind_the_end(struct rig *rig)
{
    struct thing *thing = rig_thing(rig, sim_connection(rig->sim)->fd);

    ck_assert_int_eq(thing->source.io->shutdown(&thing->source).status, IO_DONE);
    ck_assert_int_eq(rig_send(thing, "x", 1).error, EPIPE);
    thing->source.io->close(&thing->source, false);
}

static void send_nothing(struct rig *rig)
{
    struct thing *thing = rig_thing(rig, sim_connection(rig->sim)->fd);

    ck_assert_int_eq(rig_send(thing, "", 0).error, EINVAL);
    thing->source.io->close(&thing->source, false);
}

static void receive_without_room(struct rig *rig)
{
    struct thing *thing = rig_thing(rig, sim_connection(rig->sim)->fd);

    ck_assert_int_eq(rig_recv(thing, NULL, 0).status, IO_AGAIN_READ);
    thing->source.io->close(&thing->source, false);
}

static void connect_twice(struct rig *rig)
{
    struct sockaddr address = { .sa_family = AF_UNIX };
    struct thing *thing = rig_thing(rig, -1);
    struct source first;

    thing->source.io->connect(&thing->source, &address, sizeof(address));
    first = thing->source;
    thing->source.io->connect(&thing->source, &address, sizeof(address));
    first.io->close(&first, false);
    thing->source.io->close(&thing->source, false);
}

static void leave_open(struct rig *rig)
{
    struct sim_socket *listener = sim_listener(rig->sim, -1);
    struct source source = rig_thing(rig, listener->fd)->source;
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    int fd;

    sim_client(listener); /* whom nobody accepts: it is not the program's */
    sim_client(listener);
    source.io->accept(&source, &fd, (struct sockaddr *)&peer, &length);
    sim_check_closed(rig->sim);
    sim_check_closed(rig->sim); /* is said once */
}

static const struct {
    void (*act)(struct rig *rig);
    int fd;
    const char *text;
} misdeeds[] = {
    { receive_closed, BAD_FD, "recv() although it is not open" },
    { send_closed, BAD_FD, "send() although it is not open" },
    { close_twice, 1000000, "close() although it is not open" },
    { close_watched, 1000000, "close() while it is watched" },
    { watch_closed, BAD_FD, "is watched although it is not open" },
    { leave_unwatched, 1000000, "is watched no more, and was not" },
    { send_behind_the_end, 1000000, "send() after shutdown()" },
    { send_nothing, 1000000, "send() of 0 bytes in 1 pieces" },
    { receive_without_room, 1000000, "recv() without room" },
    { connect_twice, 1000000, "connect() of a source that has a descriptor" },
    { leave_open, 1000001, "was not closed" },
};

static char called[256];

static void remember(void *arg, const char *text)
{
    ck_assert_ptr_eq(arg, called);
    snprintf(called, sizeof(called), "%s", text);
}

/* What the misdeed has left of sources. */
static void drop_sources(struct rig *rig)
{
    struct source_table *table = &rig->loop.sources;

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
    struct rig *rig = rig_set_up(4);
    char expected[256];

    sim_on_fault(rig->sim, remember, called);
    misdeeds[_i].act(rig);
    snprintf(expected, sizeof(expected), "descriptor %d: %s", misdeeds[_i].fd, misdeeds[_i].text);
    ck_assert_uint_eq(sim_faults(rig->sim), 1);
    ck_assert_str_eq(sim_fault_text(rig->sim, 0), expected);
    ck_assert_ptr_null(sim_fault_text(rig->sim, 1));
    ck_assert_str_eq(called, expected);
    drop_sources(rig);
    rig_tear_down(rig);
}
END_TEST

static unsigned calls;

static void count(void *arg, const char *text)
{
    (void)arg;
    (void)text;
    calls++;
}

START_TEST(what_is_left_at_the_end_is_noticed)
{
    struct rig *rig = rig_set_up(1);
    struct sim *sim = rig->sim;

    sim_on_fault(sim, count, NULL);
    rig_watch(rig, sim_connection(sim)->fd);
    drop_sources(rig);
    rig_tear_down_loop(rig);
    ck_assert_uint_eq(calls, 1);
    ck_assert_str_eq(sim_fault_text(sim, 0), "descriptor 1000000: is watched at the loop's end");
    sim_destroy(&sim);
    ck_assert_uint_eq(calls, 2); /* and it was never closed */
}
END_TEST

START_TEST(a_refused_watch_is_no_fault)
{
    struct rig *rig = rig_set_up(1);
    struct thing *thing = rig_thing(rig, sim_connection(rig->sim)->fd);

    sim_refuse_watching(rig->sim, ENOSPC);
    ck_assert_int_eq(source_arm_both(&rig->loop, &thing->source), -1);
    ck_assert_int_eq(errno, ENOSPC);
    sim_refuse_watching(rig->sim, 0);
    ck_assert_int_eq(source_arm_both(&rig->loop, &thing->source), 0);
    rig_close(rig, &thing);
    ck_assert_uint_eq(sim_faults(rig->sim), 0);
    rig_tear_down(rig);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_misdeed_is_noticed, 0, (int)countof(misdeeds));
    tcase_add_test(tcase, what_is_left_at_the_end_is_noticed);
    tcase_add_test(tcase, a_refused_watch_is_no_fault);
}

TEST_MAIN("sim_faults", add_tests)

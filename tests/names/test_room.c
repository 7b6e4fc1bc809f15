/* SPDX-License-Identifier: BSD-2-Clause */
/* The room of a resolver for questions, on a simulated kernel and by its clock: unanswered names
 * keep no further name waiting, questions have separate sockets, and sockets are few. The test is
 * the server of names. Names beginning with "a" are answered, all others never. */
#include "names/names.h"
#include "support/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANGING 10000
#define SOCKETS_MOST 512 /* of a worker */
#define WAIT_MS 50
#define HEADER 12
#define TYPE_N 4 /* type and class */

struct room {
    struct fixture *fixture;
    struct names_setting settings[2];
    struct names *names;
    struct sim_server *servers[2];
    struct sim_socket *sockets[SOCKETS_MOST]; /* open ones, by which questions came */
    unsigned socket_n;
    unsigned asked_n; /* questions that have come */
    unsigned found;   /* resolutions that have found something */
};

static const struct sockaddr_in server_addresses[2] = {
    { .sin_family = AF_INET, .sin_port = 0x3500, .sin_addr.s_addr = 0x0100000a },
    { .sin_family = AF_INET, .sin_port = 0x3500, .sin_addr.s_addr = 0x0200000a },
};

static void call_asker(struct names *names, struct fb_worker *handle, names_resolved *resolved,
    const fb_names *what, void *arg)
{
    (void)names;
    resolved(handle, what, arg);
}

static void ignore(struct names *names)
{
    (void)names;
}

static void note(struct fb_worker *handle, const fb_names *what, void *arg)
{
    struct room *room = arg;

    (void)handle;
    room->found += what->outcome == FB_NAME_FOUND;
}

static void begin(struct room *room, unsigned resolvers)
{
    *room = (struct room) { .fixture = fixture_start_loop(2 * SOCKETS_MOST) };
    for (unsigned i = 0; i < resolvers; i++) {
        room->settings[i] =
            (struct names_setting) { .servers = i == 0 ? "10.0.0.1:53" : "10.0.0.2:53",
                .ipv4 = true,
                .users = NAMES_OF_SESSIONS };
        if (i > 0)
            room->settings[i - 1].next = &room->settings[i];
        room->servers[i] = sim_server(
            room->fixture->sim, (const void *)&server_addresses[i], sizeof(server_addresses[i]));
    }
    room->names = names_create(
        room->fixture->loop, &room->fixture->memory.memory, &room->settings[0], NAMES_OF_SESSIONS);
    ck_assert_ptr_nonnull(room->names);
    room->names->deliver = call_asker;
    room->names->delivered = ignore;
}

static void end(struct room *room)
{
    names_check(room->names);
    names_destroy(&room->names);
    fixture_stop(room->fixture);
}

static void ask(struct room *room, unsigned resolver, const char *name)
{
    struct names_query wish = {
        .name = name,
        .type = FB_NAME_A,
        .quiet = true,
        .resolved = note,
        .arg = room,
    };

    ck_assert_ptr_nonnull(names_resolve(room->names, &room->settings[resolver], &wish));
}

static void ask_hanging(struct room *room, unsigned resolver, unsigned n)
{
    char name[32];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%u-%u.test", i, room->asked_n);
        ask(room, resolver, name);
    }
}

/* Answers the socket's question with 192.0.2.1. */
static void answer(struct sim_socket *socket)
{
    static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
    uint8_t reply[512];
    size_t n = HEADER + strlen((const char *)socket->sent + HEADER) + 1 + TYPE_N;

    ck_assert_uint_ge(socket->sent_n, n);
    memcpy(reply, socket->sent, n);
    memcpy(reply + 2, "\x81\x80\0\1\0\1\0\0\0\0", 10);
    memcpy(reply + n, record, sizeof(record));
    sim_say(socket, reply, n + sizeof(record));
}

static void forget_closed(struct room *room)
{
    unsigned n = room->socket_n;

    room->socket_n = 0;
    for (unsigned i = 0; i < n; i++)
        if (room->sockets[i]->closed)
            sim_socket_free(&room->sockets[i]);
        else
            room->sockets[room->socket_n++] = room->sockets[i];
}

/* Takes what was asked, and answers it. */
static void serve(struct room *room)
{
    struct sim_socket *socket;

    forget_closed(room);
    for (unsigned i = 0; i < 2 && room->servers[i] != NULL; i++)
        while ((socket = sim_server_take(room->servers[i])) != NULL) {
            ck_assert_uint_eq(socket->sends, 1);
            room->asked_n++;
            if (socket->sent[HEADER + 1] == 'a')
                answer(socket);
            if (socket->closed) {
                sim_socket_free(&socket);
                continue;
            }
            ck_assert_uint_lt(room->socket_n, SOCKETS_MOST);
            room->sockets[room->socket_n++] = socket;
        }
}

static void pass(struct room *room, unsigned ms)
{
    fixture_run(room->fixture);
    serve(room);
    fixture_run(room->fixture);
    for (unsigned i = 0; i < ms; i++) {
        fixture_pass(room->fixture, 1);
        serve(room);
        fixture_run(room->fixture);
    }
    forget_closed(room);
}

/* Fails unless the name is found within WAIT_MS. */
static void expect_found(struct room *room, unsigned resolver, const char *name)
{
    unsigned found = room->found, asked = room->asked_n, ms = 0;

    ask(room, resolver, name);
    for (pass(room, 0); room->found == found; ms++) {
        ck_assert_msg(ms < WAIT_MS,
            "\"%s\" was not found within %u ms, in which %u others were asked for", name, WAIT_MS,
            room->asked_n - asked);
        pass(room, 1);
    }
}

/* While all names beside are new, while the names hang, and when asked again. */
START_TEST(hanging_names_keep_nobody_waiting)
{
    struct room room;

    begin(&room, 1);
    ask_hanging(&room, 0, HANGING);
    expect_found(&room, 0, "a1.test");
    pass(&room, 5);
    expect_found(&room, 0, "a2.test");
    pass(&room, 700);
    expect_found(&room, 0, "a3.test");
    for (unsigned i = 0; i < 20; i++) {
        char name[32];

        pass(&room, 100);
        snprintf(name, sizeof(name), "again%u.test", i);
        ask_hanging(&room, 0, 1000);
        expect_found(&room, 0, name);
    }
    end(&room);
}
END_TEST

/* A socket sends a single question, and is closed with the answer. */
START_TEST(questions_have_sockets_of_their_own)
{
    struct room room;

    begin(&room, 1);
    ask_hanging(&room, 0, 1);
    for (unsigned i = 0; i < 100; i++) {
        char name[32];

        snprintf(name, sizeof(name), "a%u.test", i);
        expect_found(&room, 0, name);
    }
    ck_assert_uint_eq(room.asked_n, 101);
    ck_assert_uint_eq(room.socket_n, 1);
    end(&room);
}
END_TEST

/* More than the library's limit: the rest is returned. */
START_TEST(great_numbers_keep_nobody_waiting)
{
    struct room room;

    begin(&room, 1);
    for (unsigned i = 0; i < 40; i++) {
        ask_hanging(&room, 0, 1000);
        pass(&room, 50);
    }
    expect_found(&room, 0, "a1.test");
    pass(&room, 1000);
    expect_found(&room, 0, "a2.test");
    end(&room);
}
END_TEST

/* The sockets of a worker are divided among the resolvers. */
START_TEST(resolvers_keep_none_waiting)
{
    struct room room;

    begin(&room, 2);
    ask_hanging(&room, 0, 2000);
    ask_hanging(&room, 1, 100);
    expect_found(&room, 1, "a1.test");
    expect_found(&room, 0, "a2.test");
    pass(&room, 10);
    expect_found(&room, 1, "a3.test");
    end(&room);
}
END_TEST

/* A datagram with a number other than the question's is dropped, and the true reply heard. */
START_TEST(foreign_replies_are_dropped)
{
    struct room room;
    struct sim_socket *socket;

    begin(&room, 1);
    ask_hanging(&room, 0, 1);
    pass(&room, 1);
    ck_assert_uint_eq(room.socket_n, 1);
    socket = room.sockets[0];
    for (unsigned i = 0; i < 255; i++) {
        socket->sent[1]++;
        answer(socket);
    }
    pass(&room, 10);
    ck_assert_uint_eq(room.found, 0);
    ck_assert_uint_eq(room.socket_n, 1);
    socket->sent[1]++;
    answer(socket);
    pass(&room, 1);
    ck_assert_uint_eq(room.found, 1);
    ck_assert_uint_eq(room.socket_n, 0);
    end(&room);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, hanging_names_keep_nobody_waiting);
    tcase_add_test(tcase, questions_have_sockets_of_their_own);
    tcase_add_test(tcase, great_numbers_keep_nobody_waiting);
    tcase_add_test(tcase, resolvers_keep_none_waiting);
    tcase_add_test(tcase, foreign_replies_are_dropped);
}

TEST_MAIN("room for questions", add_tests)

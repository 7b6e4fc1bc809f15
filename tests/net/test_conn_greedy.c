/* SPDX-License-Identifier: BSD-2-Clause */
/* Endless connections beside a modest one: the work of a connection in a turn of the loop is
 * bounded, so the modest connection has an answer in the same turn, and the greedy connection goes
 * on in the next. Counted, not timed. */
#include "support/owner.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ends endless callbacks, where nothing else does. */
#define ENDLESS 1000
/* The most callbacks for a connection in one turn, and the most bytes sent. */
#define CALLBACKS_MOST 64
#define BYTES_MOST (2 * 1024 * 1024)
#define PIECE ((size_t)64 * 1024) /* fills the worker's scratch buffer, so more is expected */
#define LARGE ((size_t)64 * 1024 * 1024)

static uint8_t piece[PIECE];

/* Endless input: as much again as is received. */
static void say_more(struct owner *owner)
{
    if (owner->datas < ENDLESS)
        sim_say(owner->socket, piece, PIECE);
}

/* A turn in which the modest client sends bytes, and gets the echo. */
static void turn_beside(struct owner *modest)
{
    unsigned datas = modest->datas;
    size_t sent = modest->socket->sent_n;

    sim_says(modest->socket, "me too");
    fixture_turn(modest->fixture);
    ck_assert_uint_eq(modest->datas, datas + 1);
    ck_assert_uint_eq(modest->socket->sent_n, sent + 6);
}

static struct owner *open_modest(struct fixture *fixture)
{
    struct owner *owner = owner_open(fixture);

    owner->data = owner_echo;
    return owner;
}

/* Turns a few times; the greedy connection goes on in every turn, with at most `most` callbacks. */
static void check_turns(struct owner *modest, const unsigned *callbacks, unsigned most)
{
    for (int i = 0; i < 3; i++) {
        unsigned before = *callbacks;

        turn_beside(modest);
        ck_assert_uint_gt(*callbacks, before);
        ck_assert_uint_le(*callbacks, before + most);
    }
}

static size_t stop_and_resume(struct owner *owner, fb_bytes in)
{
    say_more(owner);
    conn_stop(owner->conn);
    conn_resume(owner->conn);
    return in.n;
}

START_TEST(a_resume_within_data_is_for_the_next_turn)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *greedy = owner_open(fixture), *modest = open_modest(fixture);

    greedy->data = stop_and_resume;
    say_more(greedy);
    check_turns(modest, &greedy->datas, CALLBACKS_MOST);
    greedy->data = NULL;
    fixture_end_all(fixture);
    owner_free(&greedy);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

static size_t hand_over(struct owner *owner, fb_bytes in)
{
    say_more(owner);
    conn_stop(owner->conn);
    conn_resume(owner->other->conn);
    return in.n;
}

START_TEST(two_that_resume_each_other_leave_time)
{
    struct fixture *fixture = fixture_start_net(_i, 3);
    struct owner *a = owner_open(fixture), *b = owner_open(fixture);
    struct owner *modest = open_modest(fixture);

    a->other = b;
    b->other = a;
    a->data = b->data = hand_over;
    say_more(a);
    say_more(b);
    check_turns(modest, &a->datas, CALLBACKS_MOST);
    ck_assert_uint_gt(b->datas, 0);
    a->data = b->data = NULL;
    fixture_end_all(fixture);
    owner_free(&a);
    owner_free(&b);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

/* Connects that are made again at once, by all owners of a test. */
struct connects {
    struct owner *owners[ENDLESS];
    unsigned n;
};

static void connect_again(struct owner *owner)
{
    struct connects *connects = owner->fixture->test;

    if (connects->n < ENDLESS) {
        struct owner *next = owner_connect(owner->fixture, owner);

        next->openings = next->closings = 0;
        connects->owners[connects->n++] = next;
    }
}

static void check_connects(struct fixture *fixture, const struct owner *like)
{
    static struct connects connects;
    struct owner *modest = open_modest(fixture);

    fixture->test = &connects;
    connects.owners[0] = owner_connect(fixture, like);
    connects.n = 1;
    fixture_settle(fixture);
    check_turns(modest, &connects.n, CALLBACKS_MOST);
    for (unsigned i = 0; i < connects.n; i++)
        connects.owners[i]->closed = NULL;
    fixture_end_all(fixture);
    for (unsigned i = 0; i < connects.n; i++)
        owner_free(&connects.owners[i]);
    owner_free(&modest);
    fixture_logged(fixture);
    fixture_stop(fixture);
}

START_TEST(a_connect_that_fails_at_once_fails_in_the_next_turn)
{
    static const struct owner like = { .closed = connect_again };
    struct fixture *fixture = fixture_start_net(_i, 4);
    struct sim_server *server = owner_server(fixture);

    sim_server_answer(server, SIM_REFUSES, 0);
    server->at_once = true;
    check_connects(fixture, &like);
}
END_TEST

START_TEST(connects_that_succeed_at_once_leave_time)
{
    static const struct owner like = { .opened = owner_abort, .closed = connect_again };
    struct fixture *fixture = fixture_start_net(_i, 4);

    owner_server(fixture)->at_once = true;
    check_connects(fixture, &like);
}
END_TEST

static const char bytes[] = "from where it is";

/* Output that writes more after each send. */
static void write_again(void *arg)
{
    struct owner *owner = arg;

    if (owner->conn != NULL && ++owner->n < ENDLESS)
        ck_assert_int_eq(conn_write_ref(owner->conn, bytes, sizeof(bytes), write_again, owner), 0);
}

START_TEST(a_release_that_writes_again_leaves_time)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *greedy = owner_open(fixture), *modest = open_modest(fixture);

    write_again(greedy);
    for (int i = 0; i < 3; i++) {
        size_t before = greedy->n;

        turn_beside(modest);
        ck_assert_uint_gt(greedy->n, before);
        ck_assert_uint_le(greedy->n, before + CALLBACKS_MOST);
    }
    greedy->n = ENDLESS;
    fixture_end_all(fixture);
    fixture_settle(fixture);
    owner_free(&greedy);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

static void released(void *arg)
{
    (void)arg;
}

static void check_large_output(struct owner *greedy, struct owner *modest)
{
    fixture_settle(greedy->fixture);
    for (int i = 0; i < 3; i++) {
        size_t before = greedy->socket->sent_n;

        turn_beside(modest);
        ck_assert_uint_ge(greedy->socket->sent_n, before + PIECE);
        ck_assert_uint_le(greedy->socket->sent_n, before + BYTES_MOST);
    }
    fixture_end_all(greedy->fixture);
    fixture_settle(greedy->fixture);
}

START_TEST(much_output_leaves_in_several_turns)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *greedy = owner_open(fixture), *modest = open_modest(fixture);

    for (size_t n = 0; n < LARGE; n += PIECE)
        ck_assert_int_eq(conn_write_ref(greedy->conn, piece, PIECE / 4, released, NULL), 0);
    check_large_output(greedy, modest);
    owner_free(&greedy);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_large_file_leaves_in_several_turns)
{
    struct fixture *fixture = fixture_start_net(_i, 2);
    struct owner *greedy = owner_open(fixture), *modest = open_modest(fixture);
    int fd = memfd_create("large", MFD_CLOEXEC);

    ck_assert_int_eq(ftruncate(fd, (off_t)LARGE), 0);
    ck_assert_int_eq(conn_write_file(greedy->conn, fd, 0, LARGE), 0);
    check_large_output(greedy, modest);
    owner_free(&greedy);
    owner_free(&modest);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_resume_within_data_is_for_the_next_turn, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, two_that_resume_each_other_leave_time, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(
        tcase, a_connect_that_fails_at_once_fails_in_the_next_turn, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, connects_that_succeed_at_once_leave_time, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_release_that_writes_again_leaves_time, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, much_output_leaves_in_several_turns, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_large_file_leaves_in_several_turns, 0, FIXTURE_EVENTS);
}

TEST_MAIN("greedy connections", add_tests)

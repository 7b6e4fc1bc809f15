/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of connections with TLS: close_notify is the last of what is sent, if all output was. */
#include "tls/sealing.h"

#include <errno.h>
#include <string.h>

#define SEALED(n) (TLS_HEADER + (n) + 1 + CIPHER_TAG)

/* Opens a connection with "hello" held, but for as many sealed bytes. */
static void open_with_held(struct sealed *sealed, enum fixture_events events, size_t room)
{
    sealed_open(sealed, events);
    sim_set_room(sealed->owner->socket, room);
    conn_write(sealed->owner->conn, "hello", 5);
    fixture_settle(sealed->fixture);
    fixture_run(sealed->fixture);
    ck_assert(sealed->owner->conn->source.held == (room < SEALED(5)));
}

/* The peer has got all, and the end. */
static void check_told(struct sealed *sealed)
{
    ck_assert_str_eq(sealing_sent(&sealed->peer), "hello");
    ck_assert_int_eq(sealed->peer.alert, TLS_CLOSE_NOTIFY);
    ck_assert_uint_eq(sealed->peer.raw.n, 0);
    ck_assert(!sealed->owner->socket->reset);
}

START_TEST(a_close_waits_for_held_output)
{
    for (size_t room = 0; room <= SEALED(5) + SEALED(2); room++) {
        struct sealed sealed;

        open_with_held(&sealed, _i, room);
        conn_close(sealed.owner->conn);
        fixture_settle(sealed.fixture);
        fixture_run(sealed.fixture);
        ck_assert(sealed.owner->socket->closed == (room == SEALED(5) + SEALED(2)));
        sealed_let_all_leave(&sealed);
        ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
        ck_assert(sealed.owner->socket->closed);
        check_told(&sealed);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(the_end_of_our_half_waits_for_held_output)
{
    for (size_t room = 0; room <= SEALED(5) + SEALED(2); room++) {
        struct sealed sealed;

        open_with_held(&sealed, _i, room);
        conn_shutdown(sealed.owner->conn);
        fixture_settle(sealed.fixture);
        fixture_run(sealed.fixture);
        ck_assert(sealed.owner->socket->shut == (room == SEALED(5) + SEALED(2)));
        sealed_let_all_leave(&sealed);
        ck_assert(sealed.owner->socket->shut);
        check_told(&sealed);
        /* the peer's half goes on; new keys are not answered any more */
        sealing_add_text(&sealed.peer, "more");
        sealing_add_update(&sealed.peer, true);
        sealing_says(&sealed.peer, ", and more");
        fixture_run(sealed.fixture);
        ck_assert_uint_eq(sealed.got.n, 14);
        sealing_add_close(&sealed.peer);
        sealing_say(&sealed.peer);
        fixture_run(sealed.fixture);
        ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
        check_told(&sealed);
        sealed_close(&sealed);
    }
}
END_TEST

START_TEST(a_wrong_record_behind_our_end_is_not_answered)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    conn_shutdown(sealed.owner->conn);
    fixture_settle(sealed.fixture);
    sim_says(sealed.owner->socket, "no record");
    fixture_run(sealed.fixture);
    ck_assert_int_eq(sealed.owner->reason, FB_IO_ERROR);
    sealing_look(&sealed.peer);
    ck_assert_int_eq(sealed.peer.alert, TLS_CLOSE_NOTIFY);
    fixture_logged(sealed.fixture);
    sealed_close(&sealed);
}
END_TEST

/* Unread input of a closed connection is thrown away as it comes, and not opened. */
START_TEST(lingering_opens_nothing)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    conn_stop(sealed.owner->conn);
    fixture_settle(sealed.fixture);
    conn_write(sealed.owner->conn, "hello", 5);
    sealing_add_data(&sealed.peer, sealing_pattern(), 100000, TLS_PLAIN_MOST);
    sealing_say(&sealed.peer);
    conn_close(sealed.owner->conn);
    fixture_settle(sealed.fixture);
    fixture_run(sealed.fixture);
    ck_assert_int_eq(sealed.owner->reason, FB_FINISHED);
    ck_assert(!sealed.owner->socket->closed && sealed.owner->socket->shut);
    check_told(&sealed);
    sim_says(sealed.owner->socket, "no record");
    fixture_run(sealed.fixture);
    ck_assert(!sealed.owner->socket->closed);
    ck_assert_uint_eq(sim_unread(sealed.owner->socket), 0);
    sim_end(sealed.owner->socket);
    fixture_run(sealed.fixture);
    ck_assert(sealed.owner->socket->closed);
    ck_assert_uint_eq(sealed.owner->datas, 0);
    sealed_close(&sealed);
}
END_TEST

/* Held output leaves with the close, and nothing waits for room any more. */
START_TEST(lingering_does_not_spin)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    conn_stop(sealed.owner->conn);
    fixture_settle(sealed.fixture);
    sealing_says(&sealed.peer, "unread");
    sealed.owner->socket->send_most = 20;
    conn_write(sealed.owner->conn, "hello", 5);
    fixture_settle(sealed.fixture);
    ck_assert(sealed.owner->conn->source.held);
    sealed.owner->socket->send_most = SIZE_MAX;
    conn_close(sealed.owner->conn);
    fixture_settle(sealed.fixture);
    check_told(&sealed);
    ck_assert(!sealed.owner->socket->closed && sealed.owner->socket->shut);
    fixture_run(sealed.fixture);
    sealed_close(&sealed);
}
END_TEST

static size_t close_the_other(struct owner *owner, fb_bytes in)
{
    conn_close(owner->other->conn);
    owner->data = NULL; /* takes all, the next time */
    return in.n / 2;
}

/* Unread input of a closed connection is looked for while another's is lent. */
START_TEST(a_close_does_not_touch_lent_input)
{
    struct fixture *fixture = sealing_start(_i, 2);
    struct sealing peers[2];
    struct owner *owners[2];

    for (int i = 0; i < 2; i++) {
        owners[i] = owner_open(fixture);
        sealing_begin(&peers[i], owners[i]);
    }
    fixture_run(fixture);
    conn_stop(owners[1]->conn);
    fixture_settle(fixture);
    sealing_says(&peers[1], "unread, unread, unread");
    owners[0]->other = owners[1];
    owners[0]->data = close_the_other;
    sealing_says(&peers[0], "taken, left");
    fixture_run(fixture);
    ck_assert_int_eq(owners[1]->reason, FB_FINISHED);
    conn_offer_again(owners[0]->conn);
    fixture_run(fixture);
    ck_assert_str_eq(owners[0]->last, ", left");
    fixture_end_all(fixture);
    for (int i = 0; i < 2; i++) {
        owner_free(&owners[i]);
        sealing_done(&peers[i]);
    }
    sealing_stop(fixture);
}
END_TEST

START_TEST(an_abort_drops_held_output)
{
    struct sealed sealed;

    open_with_held(&sealed, _i, 7);
    owner_abort(sealed.owner);
    fixture_settle(sealed.fixture);
    ck_assert_int_eq(sealed.owner->reason, FB_ABORTED);
    ck_assert(sealed.owner->socket->reset);
    ck_assert_uint_eq(sealed.owner->socket->sent_n, 7);
    sealed_close(&sealed);
}
END_TEST

START_TEST(a_reset_is_found_while_output_is_held)
{
    for (int way = 0; way < 2; way++) {
        struct sealed sealed;

        open_with_held(&sealed, _i, 7);
        if (way == 1)
            conn_close(sealed.owner->conn);
        fixture_settle(sealed.fixture);
        sim_reset(sealed.owner->socket, ECONNRESET);
        sim_break_output(sealed.owner->socket, EPIPE);
        fixture_run(sealed.fixture);
        ck_assert_int_eq(sealed.owner->reason, FB_RESET);
        ck_assert_uint_eq(sealed.owner->closings, 1);
        fixture_logged(sealed.fixture);
        sealed_close(&sealed);
    }
}
END_TEST

static const fb_reason reasons[] = { FB_TIMED_OUT, FB_DRAINED, FB_PEER_GONE, FB_IO_ERROR,
    FB_NO_MEMORY, FB_RESET, FB_ABORTED };

/* Output that was cut off does not look whole. */
START_TEST(a_failure_is_no_end)
{
    for (unsigned i = 0; i < countof(reasons); i++)
        for (int ended = 0; ended < 2; ended++) {
            struct sealed sealed;

            sealed_open(&sealed, _i);
            sealed.owner->eof = owner_ignore_eof;
            if (ended)
                sealing_add_close(&sealed.peer);
            sealing_say(&sealed.peer);
            fixture_run(sealed.fixture);
            sim_set_room(sealed.owner->socket, 50000);
            conn_write(sealed.owner->conn, sealing_pattern(), 100000);
            fixture_settle(sealed.fixture);
            sim_set_room(sealed.owner->socket, SIZE_MAX);
            conn_fail(sealed.owner->conn, reasons[i]);
            fixture_settle(sealed.fixture);
            fixture_run(sealed.fixture);
            ck_assert_int_eq(sealed.owner->reason, reasons[i]);
            sealing_look(&sealed.peer);
            ck_assert_uint_lt(sealed.peer.plain.n, 100000);
            ck_assert(!sealed.peer.closed);
            sealed_close(&sealed);
        }
}
END_TEST

/* With nothing unsent, the end of a failed connection is one for the peer as well. */
START_TEST(a_timeout_is_an_end)
{
    for (int held = 0; held < 2; held++) {
        struct sealed sealed;

        open_with_held(&sealed, _i, held ? 7 : SIZE_MAX);
        sim_set_room(sealed.owner->socket, SIZE_MAX);
        conn_fail(sealed.owner->conn, FB_TIMED_OUT);
        fixture_settle(sealed.fixture);
        ck_assert_int_eq(sealed.owner->reason, FB_TIMED_OUT);
        ck_assert(sealed.owner->socket->closed);
        check_told(&sealed);
        sealed_close(&sealed);
    }
}
END_TEST

/* ---- A connection for the next owner ---- */

static struct conn_ops keeping_ops;
static unsigned kept;

static bool keep(struct fb_conn *conn)
{
    (void)conn;
    kept++;
    return true;
}

/* Opens a connection to a server, with TLS, whose owner may keep it. */
static struct owner *open_outgoing(
    struct fixture *fixture, struct sim_server *server, struct sealing *peer)
{
    struct owner *owner = owner_connect(fixture, NULL);

    fixture_run(fixture);
    owner_accept(server, owner);
    fixture_run(fixture);
    keeping_ops = *owner->conn->ops;
    keeping_ops.keepalive = keep;
    owner->conn->ops = &keeping_ops;
    kept = 0;
    sealing_begin(peer, owner);
    fixture_run(fixture);
    return owner;
}

START_TEST(a_kept_connection_has_sent_all)
{
    for (size_t room = 0; room <= SEALED(5); room++) {
        struct fixture *fixture = sealing_start(_i, 1);
        struct sealing peer;
        struct owner *owner = open_outgoing(fixture, owner_server(fixture), &peer);

        sim_set_room(owner->socket, room);
        conn_write(owner->conn, "hello", 5);
        conn_keep(owner->conn);
        fixture_settle(fixture);
        fixture_run(fixture);
        ck_assert_uint_eq(kept, room == SEALED(5));
        sim_set_room(owner->socket, SIZE_MAX);
        fixture_run(fixture);
        ck_assert_uint_eq(kept, 1);
        ck_assert_str_eq(sealing_sent(&peer), "hello");
        ck_assert(!peer.closed);
        conn_close(owner->conn);
        fixture_settle(fixture);
        sealing_look(&peer);
        ck_assert(peer.closed);
        owner_free(&owner);
        sealing_done(&peer);
        sealing_stop(fixture);
    }
}
END_TEST

/* A begun record of a peer is no answer to the next owner. */
START_TEST(a_connection_with_the_begin_of_a_record_is_not_kept)
{
    struct fixture *fixture = sealing_start(_i, 1);
    struct sealing peer;
    struct owner *owner = open_outgoing(fixture, owner_server(fixture), &peer);

    sealing_add_text(&peer, "stale");
    sim_say(owner->socket, peer.sealed.p, 10);
    fixture_run(fixture);
    conn_keep(owner->conn);
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_uint_eq(kept, 0);
    ck_assert_int_eq(owner->reason, FB_FINISHED);
    fixture_pass(fixture, FIXTURE_LINGERING_MS);
    owner_free(&owner);
    sealing_done(&peer);
    sealing_stop(fixture);
}
END_TEST

/* The layer moves with its held output and with the begin of a record. */
START_TEST(a_connection_taken_over_keeps_its_layer)
{
    struct fixture *fixture = sealing_start(_i, 2);
    struct sim_server *server = owner_server(fixture);
    struct sealing peer;
    struct owner *first = open_outgoing(fixture, server, &peer), *second;

    sim_set_room(first->socket, 3);
    sealing_add_update(&peer, true); /* the answer is held */
    sealing_say(&peer);
    fixture_run(fixture);
    sealing_add_text(&peer, "answer");
    sim_say(first->socket, peer.sealed.p, 9);
    fixture_run(fixture);
    fixture->sim->connect_error = EMFILE;
    second = owner_connect(fixture, NULL);
    ck_assert(conn_lacks_descriptor(second->conn));
    fixture->sim->connect_error = 0;
    loop_unpost(fixture->loop, &second->conn->source.events[EVENT_WRITE]);
    conn_take_over(second->conn, first->conn);
    second->socket = first->socket;
    fixture_settle(fixture);
    fixture_run(fixture);
    ck_assert_int_eq(first->reason, FB_FINISHED);
    ck_assert_uint_eq(second->openings, 1);
    ck_assert(second->conn->source.layered && second->conn->source.held);
    conn_write(second->conn, "question", 8);
    fixture_settle(fixture);
    sim_set_room(second->socket, SIZE_MAX);
    fixture_run(fixture);
    ck_assert_str_eq(sealing_sent(&peer), "question");
    ck_assert_uint_eq(peer.updates, 1);
    sim_say(second->socket, peer.sealed.p + 9, peer.sealed.n - 9);
    fixture_run(fixture);
    ck_assert_str_eq(second->last, "answer");
    conn_close(second->conn);
    fixture_settle(fixture);
    owner_free(&first);
    owner_free(&second);
    sealing_done(&peer);
    sealing_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_close_waits_for_held_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, the_end_of_our_half_waits_for_held_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_wrong_record_behind_our_end_is_not_answered, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lingering_opens_nothing, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, lingering_does_not_spin, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_close_does_not_touch_lent_input, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, an_abort_drops_held_output, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_reset_is_found_while_output_is_held, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_timeout_is_an_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_failure_is_no_end, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_kept_connection_has_sent_all, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(
        tcase, a_connection_with_the_begin_of_a_record_is_not_kept, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_connection_taken_over_keeps_its_layer, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_end", add_tests)

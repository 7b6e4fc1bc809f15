/* SPDX-License-Identifier: BSD-2-Clause */
/* Tickets of a server, which a connection hands on while they come first, and passes over later. */
#include "tls/link_private.h"
#include "tls/sealing.h"

#include <string.h>

/* A link that takes the tickets of a handshake, which is done. */
static struct tls_link link_;
static unsigned taken;        /* records with tickets */
static unsigned most;         /* after which the link wants no more */
static unsigned forgotten;    /* how often the handshake was */
static uint8_t records[4096]; /* records as they were handed on */
static size_t record_n;

static void ignore_feed(struct tls_link *link, const struct tls_request *request)
{
    (void)link;
    (void)request;
}

static bool note_ticket(struct tls_link *link, const struct tls_request *request)
{
    (void)link;
    if (taken == most)
        return false;
    taken++;
    ck_assert_uint_le(request->in.n, sizeof(records) - record_n);
    memcpy(records + record_n, request->in.p, request->in.n);
    record_n += request->in.n;
    return true;
}

static void note_forgotten(struct tls_link *link, uint32_t number)
{
    (void)link;
    ck_assert_uint_ne(number, 0);
    forgotten++;
}

static void ignore_reply(
    struct tls_pending *pending, enum tls_step step, const struct tls_reply *reply)
{
    (void)pending;
    (void)step;
    (void)reply;
}

/* Returns the number of a handshake that awaits tickets. */
static uint32_t await_tickets(struct loop *loop)
{
    static const struct tls_link_ops ops = {
        .feed = ignore_feed, .ticket = note_ticket, .cancel = note_forgotten
    };
    struct tls_pending pending = { .replied = ignore_reply };
    struct tls_reply reply = { .session.awaits_tickets = 1 };

    memset(&link_, 0, sizeof(link_));
    taken = forgotten = 0;
    record_n = 0;
    most = UINT_MAX;
    tls_link_init(&link_, loop, &ops);
    ck_assert_int_eq(
        tls_link_begin(&link_, &pending, &(struct tls_start) { .role = TLS_CLIENT }), 0);
    tls_link_feed(&link_, &pending, (fb_bytes) { NULL, 0 });
    tls_link_reply(&link_, tls_link_find(&link_, pending.number), TLS_DONE, &reply);
    return reply.session.awaits_tickets;
}

/* A connection to a server, which awaits tickets. */
struct client {
    struct fixture *fixture;
    struct owner *owner;
    struct sealing peer;
};

static void open_client(struct client *client, enum fixture_events events)
{
    struct tls_session session;
    struct sim_server *server;

    client->fixture = sealing_start(events, 1);
    layer_use_link(client->fixture->net, &link_);
    server = owner_server(client->fixture);
    client->owner = owner_connect(client->fixture, NULL);
    fixture_run(client->fixture);
    owner_accept(server, client->owner);
    fixture_run(client->fixture);
    sealing_init(&client->peer, &session);
    session.awaits_tickets = await_tickets(client->fixture->loop);
    client->peer.socket = client->owner->socket;
    ck_assert_int_eq(layer_begin(client->owner->conn, &session, (fb_bytes) { NULL, 0 }), 0);
    fixture_run(client->fixture);
}

static void close_client(struct client *client)
{
    if (client->owner->closings == 0) {
        owner_abort(client->owner);
        fixture_settle(client->fixture);
    }
    ck_assert_uint_eq(link_.n, 0); /* no ticket is awaited any more */
    timer_del(client->fixture->loop, &link_.forgets);
    owner_free(&client->owner);
    sealing_done(&client->peer);
    sealing_stop(client->fixture);
}

/* Two tickets, of 7 and 5 bytes. */
static const uint8_t tickets[] = { 4, 0, 0, 3, 1, 2, 3, 4, 0, 0, 1, 9 };
static const uint8_t update[] = { 24, 0, 0, 1, 0 };

static void run(struct client *client)
{
    sealing_say(&client->peer);
    fixture_run(client->fixture);
}

START_TEST(the_first_records_are_handed_on_as_they_came)
{
    struct client client;
    uint8_t said[sizeof(records)];
    size_t said_n;

    open_client(&client, _i);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, sizeof(tickets));
    said_n = client.peer.sealed.n;
    memcpy(said, client.peer.sealed.p, said_n);
    sealing_add_text(&client.peer, "data");
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
    run(&client);
    ck_assert_str_eq(client.owner->last, "data");
    ck_assert_uint_eq(taken, 2);
    ck_assert_uint_eq(record_n, said_n);
    ck_assert_mem_eq(records, said, said_n);
    ck_assert_uint_eq(forgotten, 1);
    close_client(&client);
    ck_assert_uint_eq(forgotten, 1);
}
END_TEST

START_TEST(pieces_of_records_are_put_together)
{
    struct client client;

    open_client(&client, _i);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 2 + 7); /* goes on in the next */
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets + 2 + 7, sizeof(tickets) - 2 - 7);
    sealing_say_pieces(&client.peer, 3);
    fixture_run(client.fixture);
    ck_assert_uint_eq(client.owner->closings, 1); /* a cut header */
    ck_assert_ptr_nonnull(strstr(fixture_logged(client.fixture), "a handshake within"));
    close_client(&client);
    open_client(&client, _i);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 5);
    sealing_add(&client.peer, TLS_HANDSHAKE, tickets + 5, sizeof(tickets) - 5);
    sealing_say_pieces(&client.peer, 3);
    fixture_run(client.fixture);
    ck_assert_uint_eq(taken, 2);
    ck_assert_uint_eq(forgotten, 0);
    close_client(&client);
    ck_assert_uint_eq(forgotten, 1);
}
END_TEST

/* Ends of the waiting, and what is said behind. */
START_TEST(another_record_ends_the_waiting)
{
    uint8_t glued[sizeof(tickets) + sizeof(update)];
    struct client client;

    memcpy(glued, tickets, sizeof(tickets));
    memcpy(glued + sizeof(tickets), update, sizeof(update));
    for (unsigned i = 0; i < 5; i++) {
        open_client(&client, _i);
        sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
        switch (i) {
        case 0:
            sealing_add_update(&client.peer, false);
            break;
        case 1:
            sealing_add(&client.peer, TLS_DATA, "", 0);
            break;
        case 2:
            sealing_add_alert(&client.peer, 1, TLS_USER_CANCELED);
            break;
        case 3:
            sealing_add(&client.peer, TLS_HANDSHAKE, glued, sizeof(glued));
            ck_assert_int_eq(
                tls_keys_update(client.peer.ciphers, &client.peer.out, tls_suite_find(0)), 0);
            break;
        default:
            sealing_add_text(&client.peer, "data");
        }
        sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
        sealing_add_text(&client.peer, "data");
        run(&client);
        ck_assert_uint_eq(taken, 1);
        ck_assert_uint_eq(forgotten, 1);
        ck_assert_str_eq(client.owner->last + strlen(client.owner->last) - 4, "data");
        close_client(&client);
    }
}
END_TEST

START_TEST(a_link_may_want_no_more)
{
    struct client client;

    open_client(&client, _i);
    most = 1;
    for (unsigned i = 0; i < 3; i++)
        sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
    sealing_add_text(&client.peer, "data");
    run(&client);
    ck_assert_str_eq(client.owner->last, "data");
    ck_assert_uint_eq(taken, 1);
    close_client(&client);
}
END_TEST

START_TEST(a_ticket_is_not_interrupted)
{
    struct client client;

    for (unsigned late = 0; late < 2; late++) {
        open_client(&client, _i);
        if (late)
            sealing_add_text(&client.peer, "data");
        sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 6);
        sealing_add_text(&client.peer, "within");
        run(&client);
        ck_assert_uint_eq(client.owner->closings, 1);
        sealing_look(&client.peer);
        ck_assert_int_eq(client.peer.alert, TLS_UNEXPECTED_MESSAGE);
        ck_assert_str_eq(client.owner->last, late ? "data" : "");
        ck_assert_ptr_nonnull(
            strstr(fixture_logged(client.fixture), "TLS: a record within a ticket; alert 10"));
        close_client(&client);
    }
}
END_TEST

START_TEST(a_server_takes_none)
{
    struct sealed sealed;

    sealed_open(&sealed, _i);
    sealing_add(&sealed.peer, TLS_HANDSHAKE, tickets, 7);
    sealing_say(&sealed.peer);
    fixture_run(sealed.fixture);
    sealed_check_alert(&sealed, TLS_UNEXPECTED_MESSAGE, "a handshake");
    sealed_close(&sealed);
}
END_TEST

/* Tickets without data have a limit: the debt of tls/layer_input.c. */
START_TEST(tickets_without_end_are_refused)
{
    struct client client;

    open_client(&client, _i);
    for (unsigned i = 0; i < 33; i++)
        sealing_add(&client.peer, TLS_HANDSHAKE, tickets, 7);
    run(&client);
    ck_assert_uint_eq(client.owner->closings, 1);
    ck_assert_uint_eq(taken, 32);
    ck_assert_ptr_nonnull(
        strstr(fixture_logged(client.fixture), "TLS: too many records without data"));
    close_client(&client);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, the_first_records_are_handed_on_as_they_came, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, pieces_of_records_are_put_together, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, another_record_ends_the_waiting, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_link_may_want_no_more, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_ticket_is_not_interrupted, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, a_server_takes_none, 0, FIXTURE_EVENTS);
    tcase_add_loop_test(tcase, tickets_without_end_are_refused, 0, FIXTURE_EVENTS);
}

TEST_MAIN("layer_tickets", add_tests)

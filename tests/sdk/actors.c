/* SPDX-License-Identifier: BSD-2-Clause */
#include "sdk/actors.h"

#include <string.h>

char ended[ORDER_MAX];
static struct actor *coming; /* the next client's */

static int common_opened(fb_conn *conn, struct actor *actor)
{
    test_require(actor->conn == NULL || actor->conn == conn);
    actor->conn = conn;
    actor->openings++;
    return actor->opened != NULL ? actor->opened(actor) : 0;
}

static void remember(struct actor *actor, fb_bytes in)
{
    size_t n = in.n < sizeof(actor->last) - 1 ? in.n : sizeof(actor->last) - 1;

    if (n > 0)
        memcpy(actor->last, in.p, n);
    actor->last[n] = '\0';
    actor->last_n = in.n;
}

static size_t common_data(struct actor *actor, fb_bytes in)
{
    test_require(in.n > 0 && actor->eofs == 0 && actor->openings == 1);
    actor->datas++;
    remember(actor, in);
    return actor->data != NULL ? actor->data(actor, in) : in.n;
}

static void common_eof(struct actor *actor, fb_bytes rest)
{
    actor->eofs++;
    remember(actor, rest);
    if (actor->eof != NULL)
        actor->eof(actor, rest);
    else
        fb_close(actor->conn);
}

static void common_timer(struct actor *actor, uint32_t id)
{
    actor->timers++;
    actor->timer_id = id;
    if (actor->timer != NULL)
        actor->timer(actor, id);
}

static void common_draining(struct actor *actor, uint64_t deadline)
{
    actor->drainings++;
    actor->deadline = deadline;
    if (actor->draining != NULL)
        actor->draining(actor, deadline);
}

static int common_message(struct actor *actor, fb_ref from, fb_bytes message)
{
    actor->messages++;
    actor->from = from;
    remember(actor, message);
    return actor->message != NULL ? actor->message(actor, from, message) : 0;
}

static void common_answered(struct actor *actor, uint64_t number, fb_outcome outcome)
{
    actor->answers++;
    actor->number = number;
    actor->outcome = outcome;
    if (actor->answered != NULL)
        actor->answered(actor, number, outcome);
}

static void common_closed(struct actor *actor, fb_reason reason)
{
    size_t n = strlen(ended);

    actor->closings++;
    actor->reason = reason;
    if (actor->letter != 0 && n + 1 < ORDER_MAX)
        ended[n] = actor->letter;
    if (actor->closed != NULL)
        actor->closed(actor, reason);
    actor->conn = NULL;
}

/* Clients, whose state is the place of a pointer */

static struct actor *at(void *state)
{
    struct actor *actor = *(struct actor **)state;

    test_require(actor != NULL);
    return actor;
}

static int client_opened(fb_conn *conn, void *state)
{
    static struct actor crowd; /* of those that nobody looks at */
    struct actor *actor = coming != NULL ? coming : &crowd;

    coming = NULL;
    *(struct actor **)state = actor;
    if (actor == &crowd)
        crowd = (struct actor) { .conn = conn };
    return common_opened(conn, actor);
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    return common_data(at(state), in);
}

static void client_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)conn;
    common_eof(at(state), rest);
}

static void client_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    common_timer(at(state), id);
}

static void client_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)conn;
    common_draining(at(state), deadline);
}

static int client_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    return common_message(at(state), from, message);
}

static void client_answered(fb_conn *conn, void *state, uint64_t number, fb_outcome outcome)
{
    (void)conn;
    common_answered(at(state), number, outcome);
}

static void client_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    common_closed(at(state), reason);
}

static const fb_ops client_ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .data = client_data,
    .eof = client_eof,
    .timer = client_timer,
    .draining = client_draining,
    .message = client_message,
    .answered = client_answered,
    .closed = client_closed,
};

/* Connections to servers, whose state is the actor */

static int server_opened(fb_conn *conn, void *state)
{
    return common_opened(conn, state);
}

static size_t server_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)conn;
    return common_data(state, in);
}

static void server_eof(fb_conn *conn, void *state, fb_bytes rest)
{
    (void)conn;
    common_eof(state, rest);
}

static void server_timer(fb_conn *conn, void *state, uint32_t id)
{
    (void)conn;
    common_timer(state, id);
}

static void server_draining(fb_conn *conn, void *state, uint64_t deadline)
{
    (void)conn;
    common_draining(state, deadline);
}

static int server_message(fb_conn *conn, void *state, fb_ref from, fb_bytes message)
{
    (void)conn;
    return common_message(state, from, message);
}

static void server_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)conn;
    common_closed(state, reason);
}

#define SERVER_OPS                                                                                 \
    .size = sizeof(fb_ops), .opened = server_opened, .data = server_data, .eof = server_eof,       \
    .timer = server_timer, .draining = server_draining, .message = server_message,                 \
    .closed = server_closed

const fb_ops actor_ops = { SERVER_OPS }, actor_ops_too = { SERVER_OPS };

static const fb_directive directives[] = {
    { .name = "actor", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(actor) = {
    FB_PROTOCOL_HEADER,
    .name = "actor",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct actor *),
    .ops = &client_ops,
};

/* Tests */

fb_test *start(void)
{
    fb_test *test = fb_test_start(&fb_protocol_actor, "actor; first_byte_timeout off;");

    ck_assert_ptr_nonnull(test);
    memset(ended, 0, sizeof(ended));
    return test;
}

void finish(fb_test **test)
{
    ck_assert_int_eq(fb_test_end(test), 0);
}

void settle(fb_test *test)
{
    net_flush(&test->worker.stream.net);
    fb_test_run(test);
    stream_check(&test->worker.stream);
}

fb_test_peer *visit(fb_test *test, struct actor *actor)
{
    fb_test_peer *peer = fb_test_connect(test);

    coming = actor;
    fb_test_run(test);
    stream_check(&test->worker.stream);
    ck_assert_ptr_null(coming);
    return peer;
}

fb_conn *begin_connect(struct actor *owner, struct actor *actor, const char *address)
{
    const fb_target *target = fb_make_target(owner->conn, address);

    ck_assert_ptr_nonnull(target);
    actor->conn = fb_connect(owner->conn, target, &actor_ops, actor);
    return actor->conn;
}

fb_test_peer *connect_to(fb_test *test, struct actor *owner, struct actor *actor)
{
    fb_test_server *server = fb_test_serve(test, SERVER, FB_TEST_ACCEPTS);

    ck_assert_ptr_nonnull(begin_connect(owner, actor, SERVER));
    settle(test);
    return fb_test_accept(server);
}

const char *heard(fb_test_peer *peer)
{
    return (const char *)fb_test_heard(peer).p;
}

size_t leave_all(struct actor *actor, fb_bytes in)
{
    (void)actor;
    (void)in;
    return 0;
}

void stay(struct actor *actor, fb_bytes rest)
{
    (void)actor;
    (void)rest;
}

uint64_t mono(fb_test *test)
{
    return fb_mono_ms(fb_test_worker(test));
}

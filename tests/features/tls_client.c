/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients with TLS, and the link of a worker to the engine without cryptography. */
#include "features/tls_client.h"

#include "features/ssl/handshake.h"
#include "support/fixture.h"
#include "tls/handshakes.h"
#include "tls/link_local.h"
#include "tls/link_private.h"

#include <fcntl.h>
#include <string.h>

#define PROFILE .handshake_timeout = 3000, .versions = TLS_VERSION_1_3, .trusted = TLS_NO_FILE

struct tls_profile tls_profiles[2] = { { .index = 0, PROFILE }, { .index = 1, PROFILE } };
static struct tls_file certificates[] = { { .path = "/one.tests.crt", .at = "/test:1" } };
static const struct tls_profiles profiles = {
    .list = tls_profiles, .n = 2, .files = certificates, .file_n = countof(certificates)
};

static struct tls_engine *engine;

/* ---- A link whose replies the test holds ---- */

#define HELD_MOST 32

struct held_request {
    struct tls_request request;
    uint8_t bytes[TLS_FEED_MOST], paths[TLS_PATHS_MOST];
};

struct held_link {
    struct tls_link base; /* the first member */
    struct tls_handshakes *handshakes;
    unsigned n;
    struct held_request *requests[HELD_MOST];
};

static struct held_link *held;

static void hold_request(struct tls_link *link, const struct tls_request *request)
{
    struct held_request *copy = malloc(sizeof(*copy));
    fb_bytes paths = request->start.paths;

    (void)link;
    ck_assert_uint_lt(held->n, HELD_MOST);
    ck_assert_ptr_nonnull(copy);
    copy->request = *request;
    copy->request.in.p = copy->bytes;
    if (request->in.n > 0)
        memcpy(copy->bytes, request->in.p, request->in.n);
    copy->request.start.paths.p = copy->paths;
    if (paths.n > 0)
        memcpy(copy->paths, paths.p, paths.n);
    held->requests[held->n++] = copy;
}

static void cancel_held(struct tls_link *link, uint32_t number)
{
    (void)link;
    tls_handshakes_cancel(held->handshakes, number);
}

static void run_held(struct loop *loop, struct source *source)
{
    (void)loop;
    (void)source;
}

static struct held_request *take_held(void)
{
    struct held_request *first = held->requests[0];

    ck_assert_uint_gt(held->n, 0);
    memmove(held->requests, held->requests + 1, --held->n * sizeof(*held->requests));
    return first;
}

static void destroy_held(struct tls_link *link)
{
    while (held->n > 0)
        free(take_held());
    tls_handshakes_destroy(held->handshakes);
    source_detach(link->loop, link->source);
    free(held);
    held = NULL;
}

static struct tls_link *create_held(struct loop *loop)
{
    static const struct tls_link_ops ops = {
        .feed = hold_request, .cancel = cancel_held, .destroy = destroy_held
    };

    held = calloc(1, sizeof(*held));
    ck_assert_ptr_nonnull(held);
    held->handshakes = tls_handshakes_create(&tls_engine_plain, engine);
    ck_assert_ptr_nonnull(held->handshakes);
    tls_link_init(&held->base, loop, &ops);
    held->base.plain = true;
    held->base.source_ops.run[EVENT_READ] = run_held;
    held->base.source = loop_make_own(loop, QUEUE_NORMAL, &held->base.source_ops);
    return &held->base;
}

uint32_t tls_held_profile(void)
{
    return held->requests[0]->request.start.profile;
}

fb_bytes tls_held_paths(void)
{
    return held->requests[0]->request.start.paths;
}

unsigned tls_held_n(void)
{
    return held->n;
}

/* Gives the owner of a request a reply; a forgotten handshake gets none. */
static void give_reply(
    const struct tls_request *request, enum tls_step step, struct tls_reply *reply)
{
    struct link_place *place = tls_link_find(&held->base, request->number);

    if (place != NULL)
        tls_link_reply(&held->base, place, step, reply);
}

void tls_reply_held(void)
{
    struct held_request *taken = take_held();
    enum tls_step step;
    struct tls_reply *reply;

    /* the engine has forgotten a cancelled handshake, and is told of none that was never begun */
    if (tls_link_find(&held->base, taken->request.number) != NULL) {
        ck_assert_int_eq(
            tls_handshakes_feed(held->handshakes, &taken->request, profiles.n, &step, &reply), 0);
        give_reply(&taken->request, step, reply);
    }
    free(taken);
}

void tls_reply_held_by(enum tls_step step, struct tls_reply *reply)
{
    struct held_request *taken = take_held();
    struct tls_reply copy = *reply;

    give_reply(&taken->request, step, &copy);
    free(taken);
}

/* ---- The worker ---- */

/* The engine reads nothing of a file. */
static int open_nothing(struct tls_files *files, uint32_t index)
{
    (void)files;
    (void)index;
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void tls_begin(struct fixture *fixture, enum tls_link_kind kind)
{
    static struct tls_files files = { .open = open_nothing, .profiles = &profiles };

    for (unsigned i = 0; i < 2; i++)
        tls_profiles[i] = (struct tls_profile) { .index = i, PROFILE };
    engine = tls_engine_plain.create(&files, NULL);
    ck_assert_ptr_nonnull(engine);
    ck_assert_int_eq(layer_init(fixture->net), 0);
    fixture->stream->tls_link =
        kind == TLS_LINK_LOCAL ? tls_link_create_local(fixture->loop, &tls_engine_plain, engine)
                               : create_held(fixture->loop);
    ck_assert_ptr_nonnull(fixture->stream->tls_link);
}

void tls_end(struct fixture *fixture)
{
    fixture_end_all(fixture);
    fixture_run(fixture);
    tls_link_destroy(fixture->stream->tls_link);
    fixture->stream->tls_link = NULL;
    layer_done(fixture->net);
    tls_engine_plain.destroy(engine);
}

void tls_add_server(struct scripted_server *scripted, unsigned i)
{
    scripted->binding.ssl = true;
    scripted->server.tls = &tls_profiles[i];
    scripted->server.keeps_tls = true;
}

/* ---- Clients ---- */

static void add_waiting(struct tls_client *client, const void *p, size_t n)
{
    struct sealing_bytes *waiting = &client->waiting;

    waiting->p = realloc(waiting->p, waiting->n + n + 1);
    ck_assert_ptr_nonnull(waiting->p);
    if (n > 0)
        memcpy(waiting->p + waiting->n, p, n);
    waiting->n += n;
}

/* Takes the keys of the session. */
static void begin_sealing(struct tls_client *client, const struct tls_session *session)
{
    client->peer.in = session->in;
    client->peer.out = session->out;
    ck_assert_int_eq(tls_keys_expand(client->peer.ciphers, &client->peer.in, tls_suite_find(0)), 0);
    ck_assert_int_eq(
        tls_keys_expand(client->peer.ciphers, &client->peer.out, tls_suite_find(0)), 0);
}

/* Gives the engine bytes of the server; what is behind the handshake is left to the records. */
static void feed_client(struct tls_client *client, const uint8_t *p, size_t n)
{
    static uint8_t out[TLS_FLIGHT_MOST], certificate[TLS_PEER_MOST];
    struct tls_reply reply = { .out = out, .out_most = sizeof(out), .peer = certificate };

    client->step = tls_engine_plain.feed(client->handshake, (fb_bytes) { p, n }, &reply);
    add_waiting(client, out, reply.out_n);
    client->peer.taken += reply.used;
    if (client->step == TLS_DONE)
        begin_sealing(client, &reply.session);
    memcpy(client->text, reply.text, sizeof(client->text));
}

static struct tls_client *create_peer(struct sim_socket *socket, enum tls_role role)
{
    struct tls_client *client = calloc(1, sizeof(*client));
    struct tls_session none;

    ck_assert_ptr_nonnull(client);
    sealing_init(&client->peer, &none);
    client->peer.socket = client->socket = socket;
    client->peer.taken = socket->sent_n;
    client->handshake = tls_engine_plain.begin(engine, &(struct tls_start) { .role = role });
    ck_assert_ptr_nonnull(client->handshake);
    client->step = TLS_MORE;
    return client;
}

struct tls_client *tls_server_create(struct sim_socket *socket)
{
    struct tls_client *server = create_peer(socket, TLS_SERVER);

    server->peer.taken = 0;
    return server;
}

struct tls_client *tls_client_create(struct sim_socket *socket)
{
    struct tls_client *client = create_peer(socket, TLS_CLIENT);

    feed_client(client, NULL, 0);
    ck_assert_int_eq(client->step, TLS_MORE);
    return client;
}

void tls_client_destroy(struct tls_client **client)
{
    tls_engine_plain.end((*client)->handshake);
    sealing_done(&(*client)->peer);
    free((*client)->waiting.p);
    free(*client);
    *client = NULL;
}

void tls_client_look(struct tls_client *client)
{
    const struct sim_socket *socket = client->socket;

    if (client->step == TLS_MORE && socket->sent_n > client->peer.taken)
        feed_client(client, socket->sent + client->peer.taken, socket->sent_n - client->peer.taken);
    if (client->step == TLS_DONE)
        sealing_look(&client->peer);
}

void tls_client_say(struct tls_client *client, size_t n)
{
    struct sealing_bytes *waiting = &client->waiting;

    if (n > waiting->n)
        n = waiting->n;
    if (n == 0)
        return;
    sim_say(client->socket, waiting->p, n);
    waiting->n -= n;
    memmove(waiting->p, waiting->p + n, waiting->n);
}

void tls_client_add(struct tls_client *client, const char *text)
{
    ck_assert_int_eq(client->step, TLS_DONE);
    sealing_add_text(&client->peer, text);
    add_waiting(client, client->peer.sealed.p, client->peer.sealed.n);
    client->peer.sealed.n = 0;
}

void tls_client_shake(struct tls_client *client, struct fixture *fixture)
{
    tls_client_say(client, SIZE_MAX);
    fixture_run(fixture);
    tls_client_look(client);
    tls_client_say(client, SIZE_MAX);
    fixture_run(fixture);
}

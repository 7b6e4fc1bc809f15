/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the first server, which connects to a server by TLS, and the server's end. */
#pragma once

#include "backends/connect.h"
#include "backends/keepalive.h"
#include "features/handshakes.h"
#include "session/secure.h"
#include "support/random.h"

#include <arpa/inet.h>
#include <errno.h>

#define CONNECT_MS 5000
#define CONNECTION ", client: 192.0.2.1, server: 192.0.2.7:77, upstream: \"192.0.2.99:443\"\n"
#define UPSTREAM " while SSL handshaking to upstream" CONNECTION

/* Calls that a connection to the server has had. */
struct told {
    fb_conn *conn;
    unsigned openings, closings;
    fb_reason reason;
    int error;
    char heard[64];
};

static struct fb_target target;
static struct sim_server *server;
static struct sim_socket *client_socket;
static struct tls_pair pair;
static struct fb_tls_profile profile;

static inline int note_opened(fb_conn *conn, void *state)
{
    struct told *told = state;

    ck_assert(conn->source.layered && !session_is_securing(conn));
    ck_assert_uint_eq(fb_received(conn), 0);
    told->openings++;
    return 0;
}

static inline size_t note_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct told *told = state;

    (void)conn;
    ck_assert_uint_eq(told->openings, 1);
    snprintf(told->heard + strlen(told->heard), sizeof(told->heard) - strlen(told->heard), "%.*s",
        (int)in.n, in.p);
    return in.n;
}

static inline void note_closed(fb_conn *conn, void *state, fb_reason reason)
{
    struct told *told = state;

    told->error = fb_error_of(conn);
    told->conn = NULL;
    told->closings++;
    told->reason = reason;
}

static const fb_ops connect_ops = {
    .size = sizeof(fb_ops), .opened = note_opened, .data = note_data, .closed = note_closed
};

static inline void start(enum tls_link_kind kind)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(443), .sin_addr.s_addr = htonl(0xc0000263)
    };

    begin_servers(0, kind);
    tls_profiles[0].pairs = &pair; /* the certificate of one.tests */
    tls_profiles[0].pair_n = 1;
    tls_profiles[1].role = TLS_CLIENT;
    tls_profiles[1].verify = TLS_VERIFY_ON;
    tls_profiles[1].trusted = 0;
    profile = (struct fb_tls_profile) { .profile = &tls_profiles[1] };
    ck_assert_ptr_null(target_parse("192.0.2.99:443", false, &target));
    server = sim_server(test.fixture->sim, (const struct sockaddr *)&address, sizeof(address));
    client_socket = scripted_connect(test.fixture);
    fixture_run(test.fixture);
    ck_assert_uint_eq(openings(), 1);
}

static inline void finish(void)
{
    log_so_far();
    end_tls();
}

static inline fb_connect_options with_name(const char *name)
{
    return (fb_connect_options) { .size = sizeof(fb_connect_options),
        .tls = &profile,
        .timeout = CONNECT_MS,
        .tls_name = { (const uint8_t *)name, strlen(name) } };
}

static inline fb_connect_options with(void)
{
    return with_name("one.tests");
}

static inline fb_connect_options with_header(void)
{
    fb_connect_options options = with();

    options.tls_before = (fb_bytes) { (const uint8_t *)"PROXY\r\n", 7 };
    return options;
}

static inline fb_connect_options with_profile(const fb_tls_profile *other)
{
    fb_connect_options options = with();

    options.tls = other;
    return options;
}

static inline fb_connect_options with_limit(void)
{
    fb_connect_options options = with();

    options.limit = options.queue = 1;
    return options;
}

/* Connects on behalf of the client. */
static inline void ask(struct told *told, fb_connect_options options)
{
    *told = (struct told) { 0 };
    options.owner = test.servers[0]->record.conn;
    told->conn = backend_connect_with(
        test.fixture->stream, NULL, &target, false, &connect_ops, told, &options);
    ck_assert_ptr_nonnull(told->conn);
    fixture_settle(test.fixture);
}

/* Takes the connected socket at the server, in the handshake. */
static inline struct tls_client *accept_connection(void)
{
    struct sim_socket *socket;

    fixture_run(test.fixture);
    socket = sim_server_take(server);
    ck_assert_ptr_nonnull(socket);
    return tls_server_create(socket);
}

/* The server's part of the whole handshake. */
static inline void shake(struct tls_client *peer)
{
    for (unsigned i = 0; i < 3; i++) {
        fixture_run(test.fixture);
        tls_client_look(peer);
        tls_client_say(peer, SIZE_MAX);
    }
    fixture_run(test.fixture);
}

static inline struct tls_client *open_connection(struct told *told, fb_connect_options options)
{
    struct tls_client *peer;

    ask(told, options);
    peer = accept_connection();
    shake(peer);
    ck_assert_int_eq(peer->step, TLS_DONE);
    ck_assert_uint_eq(told->openings, 1);
    return peer;
}

static inline void expect_failure(const struct told *told, fb_reason reason, const char *line)
{
    const char *log = log_so_far();

    ck_assert_uint_eq(told->openings, 0);
    ck_assert_uint_eq(told->closings, 1);
    ck_assert_int_eq(told->reason, reason);
    ck_assert_msg(strstr(log, line) != NULL, "logged: %s", log);
}

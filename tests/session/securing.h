/* SPDX-License-Identifier: BSD-2-Clause */
/* A session that begins TLS when its client says "go", and takes lines before and behind. */
#pragma once

#include "features/handshakes.h"
#include "session/secure.h"

static struct tls_client *client;
static unsigned dones;
static char heard[4096];                 /* by the protocol */
static void (*meanwhile)(fb_conn *conn); /* called behind the begin */
static void (*behind)(fb_conn *conn);    /* called when the handshake is done */
static bool stops_before;                /* the protocol stops the connection, then begins */
static const struct session_secure_options *options;

static inline void note_done(struct fb_conn *conn, const struct tls_reply *reply)
{
    ck_assert_int_eq(conn->session_phase, SESSION_ACTIVE);
    ck_assert(conn->source.layered && conn->ops == session_receive_ops(conn));
    ck_assert_int_eq(reply->session.version, TLS_1_3);
    dones++;
    if (behind != NULL)
        behind(conn);
}

static const struct session_secure_options server_role = {
    .start = { .role = TLS_SERVER }, .timeout = TIMEOUT, .done = note_done
};

static inline void begin_tls_within(fb_conn *conn)
{
    ck_assert(session_secure_is_possible(conn));
    ck_assert_int_eq(session_secure_begin(conn, options), 0);
    ck_assert(!session_secure_is_possible(conn));
    if (meanwhile != NULL)
        meanwhile(conn);
}

/* Takes lines; "go" begins. */
static inline size_t take_lines(fb_conn *conn, void *state, fb_bytes in)
{
    static const fb_frame_limit limit = { .most = 1000 };
    size_t all = in.n;
    fb_bytes line;

    (void)state;
    while (fb_frame_until(conn, &in, "\n", 1, &limit, &line) == 1) {
        snprintf(
            heard + strlen(heard), sizeof(heard) - strlen(heard), "%.*s,", (int)line.n, line.p);
        if (line.n == 2 && memcmp(line.p, "go", 2) == 0) {
            fb_write(conn, "ready\n", 6);
            if (stops_before)
                fb_stop(conn);
            begin_tls_within(conn);
        }
    }
    return all - in.n;
}

static inline void begin_session(enum tls_link_kind kind)
{
    begin_servers(0, kind);
    dones = 0;
    heard[0] = '\0';
    meanwhile = behind = NULL;
    stops_before = false;
    options = &server_role;
    test.servers[0]->script.data = take_lines;
    client = NULL;
}

/* Connects, and lets the session begin TLS. */
static inline struct sim_socket *go(void)
{
    struct sim_socket *socket = scripted_connect(test.fixture);

    sim_says(socket, "go\n");
    fixture_run(test.fixture);
    ck_assert_uint_eq(socket->sent_n, 6);
    ck_assert_mem_eq(socket->sent, "ready\n", 6);
    client = tls_client_create(socket);
    return socket;
}

static inline void finish(void)
{
    if (client != NULL)
        tls_client_destroy(&client);
    log_so_far();
    end_tls();
}

static inline fb_conn *conn_of_session(void)
{
    return test.servers[0]->record.conn;
}

static inline void write_meanwhile(fb_conn *conn)
{
    static const fb_bytes pieces[] = { { (const uint8_t *)"b", 1 }, { (const uint8_t *)"c", 1 } };

    fb_write(conn, "a", 1);
    fb_writev(conn, pieces, 2);
    ck_assert_uint_eq(fb_unsent(conn), 6 + 3); /* "ready" has not left either */
}

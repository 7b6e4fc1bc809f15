/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions of the servers of session/ways.h whose clients shake hands, by the engine without
 * cryptography, and what the log says of their ends. */
#pragma once

#include "features/ssl/handshake.h"
#include "features/tls_client.h"
#include "session/tls.h"
#include "session/ways.h"

#define TIMEOUT 3000
#define CONTEXT " while SSL handshaking, client: 192.0.2.1, server: 192.0.2.7:77\n"

static const char *const names[] = { "status", "session_end", "bytes_received", "bytes_sent" };

static struct variable *used[countof(names)];
static struct phase_handler log_handler;
static char seen[256]; /* by the log, with ";" between them, then the cipher's version */
static unsigned logged, accesses;
static char logs[4096]; /* lines, but those about begun sessions */

static inline unsigned note_end(struct fb_conn *conn, const void *arg)
{
    const struct session_tls_info *info = session_tls_of(conn);
    size_t n = 0;

    (void)arg;
    logged++;
    for (size_t i = 0; i < countof(names); i++) {
        const struct value *value = variable_value(conn, used[i]);

        n += (size_t)snprintf(seen + n, sizeof(seen) - n, "%.*s;", (int)value->n, value->p);
    }
    snprintf(seen + n, sizeof(seen) - n, "%x", info != NULL ? info->version : 0);
    return 0;
}

static inline unsigned note_access(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    accesses++;
    return 0;
}

static inline void add_handshake(unsigned i)
{
    add_before(i, PHASE_SSL, ssl_handshake_begin, NULL);
}

/* Begins a test of two servers, of which those of the bits shake hands. */
static inline void begin_servers(unsigned servers, enum tls_link_kind kind)
{
    begin();
    logged = accesses = 0;
    logs[0] = '\0';
    for (size_t i = 0; i < countof(names); i++)
        used[i] = use(names[i]);
    log_handler = (struct phase_handler) { .phase = PHASE_LOG, .run = note_end };
    tls_begin(test.fixture, kind);
    for (unsigned i = 0; i < 2; i++) {
        test.servers[i]->server.after = &log_handler;
        if (servers >> i & 1)
            tls_add_server(test.servers[i], i);
    }
}

static inline void begin_tls(enum tls_link_kind kind)
{
    begin_servers(1, kind);
    add_before(0, PHASE_ACCESS, note_access, NULL);
    add_handshake(0);
}

static inline void end_tls(void)
{
    tls_end(test.fixture);
    end();
}

static inline struct tls_client *connect_client(void)
{
    struct sim_socket *socket = scripted_connect(test.fixture);

    fixture_run(test.fixture);
    ck_assert_uint_eq(test.servers[0]->record.openings, 0);
    return tls_client_create(socket);
}

/* Takes the log. */
static inline const char *log_so_far(void)
{
    strncat(logs, fixture_logged(test.fixture), sizeof(logs) - strlen(logs) - 1);
    return logs;
}

/* Fails unless the session has ended like this, with a line for which the log is searched. */
static inline void expect_end(
    const struct tls_client *client, const char *end_seen, const char *line)
{
    const char *log = log_so_far();

    ck_assert(client->socket->closed);
    ck_assert_uint_eq(logged, 1);
    ck_assert_str_eq(seen, end_seen);
    ck_assert_msg(strstr(log, line) != NULL, "logged: %s", log);
}

static inline unsigned openings(void)
{
    return test.servers[0]->record.openings;
}

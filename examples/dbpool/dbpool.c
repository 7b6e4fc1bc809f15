/* SPDX-License-Identifier: BSD-2-Clause */
/* dbpool ADDRESS: lets many clients of PostgreSQL share a few connections to the server, for the
 * time of a transaction. Sessions share a connection after equal beginnings: user, database and
 * options are the pool's key. Leftovers of a transaction, such as SET or PREPARE, are visible to
 * the next. Clients are not asked for a password, nor may the server ask for one. */
#include <forkbeard/forkbeard.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX (1024 * 1024)
#define UNSENT_MAX 65536
#define KEEP_MS 600000

enum { STARTUP = 196608, SSL_REQUEST = 80877103, GSS_REQUEST = 80877104 };

struct dbpool_conf {
    const fb_target *server;
    int64_t connections, wait, age;
};

/* The state of a client, shared by its connection to the server. */
struct client {
    fb_conn *conn, *server; /* server is NULL between transactions */
    fb_bytes startup;       /* its first message */
    int greeted;
    unsigned asked; /* messages that the server answers with ReadyForQuery */
    int has_begun;  /* messages before Sync were sent, but not the Sync */
};

/* A known connection to the server, for any user. */
struct session {
    int ready;
    size_t n;
    uint8_t greeting[8192]; /* from Authentication to ReadyForQuery */
};

static const fb_frame_layout first_message = {
    .size = sizeof(fb_frame_layout), .width = 4, .counts = 4
};
static const fb_frame_layout message = {
    .size = sizeof(fb_frame_layout), .before = 1, .width = 4, .counts = 4
};
static const fb_frame_limit limit = { .most = MESSAGE_MAX };
static const fb_frame_limit first_limit = { .most = FB_KEY_MAX, .timeout = 10000 };

/* Forwards bytes from one side to the opposite side; the source is not read while the destination
 * takes nothing. */
static void forward(fb_conn *from, fb_conn *to, fb_bytes bytes)
{
    fb_write(to, bytes.p, bytes.n);
    if (fb_unsent(to) > UNSENT_MAX)
        fb_stop(from);
}

/* Ends a client that cannot be served, with an ErrorResponse. */
static void refuse(struct client *client)
{
    static const char error[] = "E\0\0\0\046SFATAL\0C08006\0Mno server is left\0";

    fb_write(client->conn, error, sizeof(error));
    fb_close(client->conn);
}

/* ---- The server ---- */

/* Gives the connection back to the pool: `closed` follows, and does not concern the client. */
static void give_back(struct client *client)
{
    fb_keep(client->server, KEEP_MS);
    client->server = NULL;
    fb_set_idle(client->conn, 1);
    fb_resume(client->conn);
}

static void greet(struct client *client, const struct session *session)
{
    fb_write(client->conn, session->greeting, session->n);
    client->greeted = 1;
    give_back(client);
}

static int server_opened(fb_conn *server, void *state)
{
    struct client *client = state;
    struct session *session = fb_attached(server);

    if (!fb_is_reused(server)) {
        session = calloc(1, sizeof(*session));
        if (session == NULL || fb_attach(server, session, free) != 0) {
            free(session);
            return -1;
        }
        fb_write(server, client->startup.p, client->startup.n);
    } else if (!client->greeted) {
        greet(client, session);
    } else {
        fb_resume(client->conn);
    }
    return 0;
}

/* Remembers the server's greeting, for the current client and for later users of the connection.
 * Returns 0 when it is no greeting: a question for a password, or an error. */
static int add_greeting(struct session *session, fb_bytes whole)
{
    static const char ok[] = "R\0\0\0\010\0\0\0";

    if (whole.p[0] == 'E' || session->n + whole.n > sizeof(session->greeting))
        return 0;
    if (whole.p[0] == 'R' && (whole.n != sizeof(ok) || memcmp(whole.p, ok, whole.n) != 0))
        return 0;
    memcpy(session->greeting + session->n, whole.p, whole.n);
    session->n += whole.n;
    session->ready = whole.p[0] == 'Z';
    return 1;
}

static size_t server_data(fb_conn *server, void *state, fb_bytes in)
{
    struct client *client = state;
    struct session *session = fb_attached(server);
    fb_bytes rest = in, head, body;

    while (fb_frame_counted(server, &rest, &message, &limit, &head, &body)) {
        fb_bytes whole = { head.p, head.n + body.n };

        if (session->ready) {
            forward(server, client->conn, whole);
            if (head.p[0] == 'Z' && --client->asked == 0 && !client->has_begun && body.n == 1 &&
                body.p[0] == 'I')
                give_back(client); /* no transaction has begun */
        } else if (!add_greeting(session, whole)) {
            fb_conn_logf(server, FB_LOG_ERROR, "the server does not let the pool in");
            if (whole.p[0] == 'E')
                fb_write(client->conn, whole.p, whole.n);
            else
                refuse(client);
            client->server = NULL;
            fb_close(server);
            fb_close(client->conn);
            break;
        } else if (session->ready && !client->greeted) {
            greet(client, session);
        } else if (session->ready) {
            fb_resume(client->conn);
        }
    }
    return in.n - rest.n;
}

static void server_writable(fb_conn *server, void *state)
{
    (void)server;
    fb_resume(((struct client *)state)->conn);
}

static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    struct client *client = state;

    (void)reason;
    if (client->server == server)
        refuse(client);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops),
    .opened = server_opened,
    .data = server_data,
    .writable = server_writable,
    .closed = server_closed,
};

/* ---- The client ---- */

/* Takes a connection from the pool, makes one, or waits. The client goes on when the connection is
 * there. */
static void take_server(struct client *client)
{
    const struct dbpool_conf *conf = fb_conf_of(client->conn);
    const fb_connect_options options = {
        .size = sizeof(options),
        .owner = client->conn,
        .key = client->startup.p,
        .key_n = client->startup.n,
        .limit = (uint32_t)conf->connections,
        .queue = UINT32_MAX,
        .queue_timeout = (uint64_t)conf->wait,
        .age = (uint64_t)conf->age,
    };

    fb_stop(client->conn);
    fb_set_idle(client->conn, 0);
    client->server =
        fb_connect_with(fb_worker_of(client->conn), conf->server, &server_ops, client, &options);
    if (client->server == NULL)
        refuse(client);
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct client *client = state;
    fb_bytes rest = in, head, body;

    if (client->server == NULL && in.p[0] != 'X') {
        take_server(client);
        return 0;
    }
    while (fb_frame_counted(conn, &rest, &message, &limit, &head, &body)) {
        if (head.p[0] == 'X') { /* Terminate is meant for the pool */
            fb_close(conn);
            break;
        }
        if (memchr("QSF", head.p[0], 3) != NULL) {
            client->asked++;
            client->has_begun = 0;
        } else if (memchr("PBDEC", head.p[0], 5) != NULL) {
            client->has_begun = 1; /* an answer to earlier queries does not end it */
        }
        fb_count_request(conn);
        forward(conn, client->server, (fb_bytes) { head.p, head.n + body.n });
    }
    return in.n - rest.n;
}

static void client_writable(fb_conn *conn, void *state)
{
    struct client *client = state;

    (void)conn;
    if (client->server != NULL)
        fb_resume(client->server);
}

static const fb_ops client_ops = {
    .size = sizeof(fb_ops), .data = client_data, .writable = client_writable
};

static size_t startup_data(fb_conn *conn, void *state, fb_bytes in)
{
    struct client *client = state;
    fb_bytes rest = in, head, body;

    while (fb_frame_counted(conn, &rest, &first_message, &first_limit, &head, &body)) {
        uint32_t code = 0;

        for (size_t i = 0; i < 4 && i < body.n; i++)
            code = code << 8 | body.p[i];
        if (code == SSL_REQUEST || code == GSS_REQUEST) {
            fb_write(conn, "N", 1);
            continue;
        }
        client->conn = conn;
        client->startup = (fb_bytes) { fb_alloc(conn, head.n + body.n), head.n + body.n };
        if (code != STARTUP || client->startup.p == NULL) {
            fb_close(conn);
            break;
        }
        memcpy((uint8_t *)client->startup.p, head.p, head.n + body.n);
        if (fb_become(conn, &client_ops, client) == 0)
            take_server(client);
        break;
    }
    return in.n - rest.n;
}

static const fb_ops startup_ops = { .size = sizeof(fb_ops), .data = startup_data };

static const fb_directive directives[] = {
    { .name = "dbpool",
        .value = FB_VALUE_TARGET,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct dbpool_conf, server) },
    { .name = "dbpool_connections", /* per worker, for clients with equal beginnings */
        .value = FB_VALUE_NUMBER,
        .offset = offsetof(struct dbpool_conf, connections),
        .least = 1,
        .greatest = 10000,
        .initial = "10" },
    { .name = "dbpool_wait",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct dbpool_conf, wait),
        .initial = "30s" },
    { .name = "dbpool_age",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct dbpool_conf, age),
        .initial = "1h" },
};

FB_PROTOCOL(dbpool) = {
    FB_PROTOCOL_HEADER,
    .name = "dbpool",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct client),
    .conf_state = sizeof(struct dbpool_conf),
    .input_limit = MESSAGE_MAX + 5,
    .ops = &startup_ops,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* knock PORT: tells whether a host answers at a port, as seen from here. A client sends names, with
 * their length in front as a varint, as in protobuf; a name replaces the name before, until the
 * search has ended. The answer, in the same form, is the address and the result of the connect;
 * then the client is closed. */
#include <errno.h>
#include <forkbeard/forkbeard.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_N 253
#define LENGTH_MAX 2 /* bytes of a varint: 14 bits */
#define ADDRESS_MAX 128

struct knock_conf {
    int64_t port;
};

struct client {
    fb_conn *conn;
    fb_resolution *resolution; /* under way, or NULL */
    char address[ADDRESS_MAX];
    int answers; /* the host has been connected to */
};

static const fb_frame_limit limit = { .most = NAME_MAX_N, .timeout = 10000 };

/* Sends the answer; its length always has two bytes. */
static void tell(struct client *client, const char *where, const char *how)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "%s: %s", where, how);
    uint8_t length[LENGTH_MAX] = { (uint8_t)(n | 0x80), (uint8_t)(n >> 7) };

    fb_write(client->conn, length, sizeof(length));
    fb_write(client->conn, text, (size_t)n);
    fb_close(client->conn);
}

static int host_opened(fb_conn *host, void *state)
{
    struct client *client = state;

    client->answers = 1;
    tell(client, client->address, "answers");
    fb_close(host);
    return 0;
}

static void host_closed(fb_conn *host, void *state, fb_reason reason)
{
    struct client *client = state;
    int error = fb_error_of(host);

    (void)reason;
    if (!client->answers)
        tell(client, client->address, error != 0 ? strerror(error) : "gave up");
}

static const fb_ops host_ops = {
    .size = sizeof(fb_ops), .opened = host_opened, .closed = host_closed
};

static void resolved(fb_worker *worker, const fb_names *names, void *arg)
{
    struct client *client = arg;
    const fb_target *host;

    (void)worker;
    client->resolution = NULL;
    fb_stop(client->conn); /* more names have no meaning */
    if (names->n == 0) {
        tell(client, names->name, names->why);
        return;
    }
    fb_address_text((const struct sockaddr_storage *)names->records[0].address, client->address,
        sizeof(client->address));
    host = fb_target_from(client->conn, names->records[0].address);
    if (host == NULL || fb_connect(client->conn, host, &host_ops, client) == NULL)
        tell(client, client->address, "no room for a connection");
}

/* Gives up the name before, because nobody waits for it. */
static void resolve(struct client *client, fb_bytes name)
{
    const struct knock_conf *conf = fb_conf_of(client->conn);
    const fb_resolve_options options = {
        .size = sizeof(options), .owner = client->conn, .port = (uint16_t)conf->port
    };
    char text[NAME_MAX_N + 1];

    if (client->resolution != NULL)
        fb_resolve_cancel(client->resolution);
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    client->resolution = memchr(text, '\0', name.n) != NULL
                             ? NULL
                             : fb_resolve(fb_worker_of(client->conn), text, FB_NAME_ADDRESSES,
                                   &options, resolved, client);
    if (client->resolution == NULL)
        tell(client, "error", "no name can be looked up");
}

static int client_opened(fb_conn *conn, void *state)
{
    ((struct client *)state)->conn = conn;
    return 0;
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    fb_bytes rest = in, name;

    while (fb_frame_varint(conn, &rest, LENGTH_MAX, &limit, &name))
        resolve(state, name);
    return in.n - rest.n;
}

static const fb_ops client_ops = {
    .size = sizeof(fb_ops), .opened = client_opened, .data = client_data
};

static const fb_directive directives[] = {
    { .name = "knock",
        .value = FB_VALUE_NUMBER,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct knock_conf, port),
        .least = 1,
        .greatest = 65535 },
};

FB_PROTOCOL(knock) = {
    FB_PROTOCOL_HEADER,
    .name = "knock",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct client),
    .conf_state = sizeof(struct knock_conf),
    .needs = FB_NEEDS_RESOLVER | FB_NEEDS_CONNECT,
    .ops = &client_ops,
};

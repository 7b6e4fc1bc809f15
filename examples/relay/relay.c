/* SPDX-License-Identifier: BSD-2-Clause */
/* relay ADDRESS: connects each client with the server at the address, and moves bytes both ways. */
#include <forkbeard/forkbeard.h>
#include <inttypes.h>

struct relay_conf {
    const fb_target *target;
    int64_t connect_timeout, timeout;
};

/* The state of a client, shared by its connection to the server. */
struct relay {
    fb_conn *client;
    uint64_t from_server, to_server; /* bytes */
    int connected;                   /* the server has been reached */
};

static int server_opened(fb_conn *server, void *state)
{
    struct relay *relay = state;
    const struct relay_conf *conf = fb_conf_of(relay->client);
    const fb_pipe_options options = { .size = sizeof(options), .timeout = (uint64_t)conf->timeout };

    relay->connected = 1;
    fb_pipe(relay->client, server, &options);
    return 0;
}

/* Runs before client_closed(). When the server could not be reached, the daemon has logged why. */
static void server_closed(fb_conn *server, void *state, fb_reason reason)
{
    struct relay *relay = state;

    (void)reason;
    relay->from_server = fb_received(server);
    relay->to_server = fb_sent(server);
    if (!relay->connected)
        fb_close(relay->client);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops),
    .opened = server_opened,
    .closed = server_closed,
};

static int client_opened(fb_conn *client, void *state)
{
    const struct relay_conf *conf = fb_conf_of(client);
    struct relay *relay = state;
    fb_conn *server = fb_connect(client, conf->target, &server_ops, relay);

    if (server == NULL) {
        fb_conn_logf(client, FB_LOG_ERROR, "no connection is left for the server");
        return -1;
    }
    relay->client = client;
    fb_stop(client); /* early input waits in the kernel until the server is there */
    fb_set_timeout(server, (uint64_t)conf->connect_timeout);
    return 0;
}

static void client_closed(fb_conn *client, void *state, fb_reason reason)
{
    const struct relay *relay = state;

    (void)reason;
    fb_conn_logf(client, FB_LOG_INFO,
        "bytes from/to client:%" PRIu64 "/%" PRIu64 ", bytes from/to upstream:%" PRIu64 "/%" PRIu64,
        fb_received(client), fb_sent(client), relay->from_server, relay->to_server);
}

static const fb_ops client_ops = {
    .size = sizeof(fb_ops),
    .opened = client_opened,
    .closed = client_closed,
};

static const fb_directive directives[] = {
    { .name = "relay",
        .value = FB_VALUE_TARGET,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct relay_conf, target) },
    { .name = "relay_connect_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct relay_conf, connect_timeout),
        .least = 1,
        .greatest = INT64_MAX,
        .initial = "60s" },
    { .name = "relay_timeout",
        .value = FB_VALUE_MSEC,
        .offset = offsetof(struct relay_conf, timeout),
        .initial = "10m" },
};

FB_PROTOCOL(relay) = {
    FB_PROTOCOL_HEADER,
    .name = "relay",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conn_state = sizeof(struct relay),
    .conf_state = sizeof(struct relay_conf),
    .ops = &client_ops,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that forwards its clients' lines to a server, over a single connection shared by the
 * clients in turns, from the local address 127.0.0.7. The worker has a second connection to the
 * server, and never ends it. */
#include <forkbeard/forkbeard.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#ifndef POOLER_NEEDS
#define POOLER_NEEDS FB_NEEDS_BIND
#endif
#ifndef POOLER_ASKS /* for rights where it is configured */
#define POOLER_ASKS 0
#endif
#ifndef POOLER_FLAGS
#define POOLER_FLAGS 0
#endif

struct pooler {
    const fb_target *target;
};

static const fb_ops idle_ops = { .size = sizeof(fb_ops) };

/* A connection to the server, with the client's connection as state. */

static size_t server_data(fb_conn *conn, void *state, fb_bytes in)
{
    if (in.p[in.n - 1] != '\n')
        return 0;
    fb_write(state, in.p, in.n);
    fb_keep(conn, 60000);
    return in.n;
}

static void server_closed(fb_conn *conn, void *state, fb_reason reason)
{
    if (reason == FB_FINISHED)
        return;
    fb_conn_logf(conn, FB_LOG_WARN, "the server failed, errno %d", fb_error_of(conn));
    fb_close(state);
}

static const fb_ops server_ops = {
    .size = sizeof(fb_ops), .data = server_data, .closed = server_closed
};

static int client_opened(fb_conn *conn, void *state)
{
    const struct pooler *conf = fb_conf_of(conn);
    fb_conn **own = fb_worker_state(conn);

    (void)state;
    if (*own == NULL)
        *own = fb_connect_with(fb_worker_of(conn), conf->target, &idle_ops, NULL, NULL);
    return *own == NULL;
}

static size_t client_data(fb_conn *conn, void *state, fb_bytes in)
{
    const struct pooler *conf = fb_conf_of(conn);
    struct sockaddr_in local = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000007) };
    fb_connect_options options = {
        .size = sizeof(options),
        .owner = conn,
        .local = (struct sockaddr *)&local,
        .receive_buffer = 65536,
        .key = "user",
        .key_n = 4,
        .limit = 1,
        .queue = 1000,
        .queue_timeout = 20000,
        .flags = POOLER_FLAGS,
    };
    fb_conn *server;

    (void)state;
    if (in.p[in.n - 1] != '\n')
        return 0;
    server = fb_connect_with(fb_worker_of(conn), conf->target, &server_ops, conn, &options);
    if (server == NULL)
        fb_close(conn);
    else
        fb_write(server, in.p, in.n);
    return in.n;
}

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = client_opened, .data = client_data };

static int conf_done(fb_conf *conf, void *own, const void *parent)
{
    (void)own;
    (void)parent;
    return POOLER_ASKS != 0 ? fb_conf_need(conf, POOLER_ASKS) : 0;
}

static const fb_directive directives[] = {
    { .name = "pooler", .value = FB_VALUE_TARGET, .flags = FB_DIRECTIVE_HANDLER },
};

FB_PROTOCOL(pooler) = {
    FB_PROTOCOL_HEADER,
    .name = "pooler",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct pooler),
    .conf_done = conf_done,
    .worker_state = sizeof(fb_conn *),
    .ops = &ops,
    .needs = POOLER_NEEDS,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The other ends of the worker's connections. */
#include "kit/kit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 40001

fb_test_peer *fb_kit_add_peer(fb_test *test, struct fb_sim_socket *socket)
{
    fb_test_peer *peer = fb_kit_alloc(sizeof(*peer));

    peer->test = test;
    peer->socket = socket;
    socket->lends = true; /* memory of exactly the size of what is said */
    STAILQ_INSERT_TAIL(&test->peers, peer, link);
    return peer;
}

void fb_kit_forget_peers(fb_test *test)
{
    fb_test_peer *peer;
    fb_test_server *server;

    while ((peer = STAILQ_FIRST(&test->peers)) != NULL) {
        STAILQ_REMOVE_HEAD(&test->peers, link);
        free(peer);
    }
    while ((server = STAILQ_FIRST(&test->servers)) != NULL) {
        STAILQ_REMOVE_HEAD(&test->servers, link);
        free(server);
    }
}

fb_test_peer *fb_test_connect(fb_test *test)
{
    fb_test_peer *peer = fb_kit_add_peer(test, fb_sim_client(test->door));
    struct sockaddr_in *address = (void *)&peer->socket->peer;

    address->sin_port = htons((in_port_t)(FIRST_PORT + test->last_port++ % 20000));
    return peer;
}

void fb_test_say(fb_test_peer *peer, const void *p, size_t n)
{
    if (peer->over)
        fb_kit_misused("fb_test_say() of a peer that has ended its half");
    if (n > 0 && !peer->socket->closed)
        fb_sim_say(peer->socket, p, n);
}

void fb_test_says(fb_test_peer *peer, const char *text)
{
    fb_test_say(peer, text, strlen(text));
}

void fb_test_shut(fb_test_peer *peer)
{
    if (!peer->over && !peer->socket->closed)
        fb_sim_end(peer->socket);
    peer->over = true;
}

void fb_test_reset(fb_test_peer *peer)
{
    if (peer->socket->closed)
        return;
    if (!peer->over)
        fb_sim_break(peer->socket, ECONNRESET);
    fb_sim_break_output(peer->socket, ECONNRESET);
    peer->over = true;
}

void fb_test_take(fb_test_peer *peer, size_t n)
{
    fb_sim_take(peer->socket, n);
}

fb_bytes fb_test_heard(fb_test_peer *peer)
{
    fb_test_run(peer->test);
    return (fb_bytes) { (const uint8_t *)fb_sim_sent(peer->socket), peer->socket->sent_n };
}

void fb_test_forget(fb_test_peer *peer)
{
    fb_test_run(peer->test);
    fb_sim_forget_sent(peer->socket);
}

int fb_test_has_ended(fb_test_peer *peer)
{
    fb_test_run(peer->test);
    return peer->socket->shut || peer->socket->closed;
}

struct search {
    int fd;
    bool lingers;
};

static void look(struct fb_conn *conn, void *arg)
{
    struct search *search = arg;

    if (conn->source.fd == search->fd)
        search->lingers = conn->lingering;
}

/* Closed, but for what the peer may still say. */
static bool lingers(const fb_test_peer *peer)
{
    struct search search = { .fd = peer->socket->fd };

    fb_net_each(&peer->test->worker.stream.net, look, &search);
    return search.lingers;
}

int fb_test_is_closed(fb_test_peer *peer)
{
    fb_test_run(peer->test);
    return peer->socket->closed || (peer->socket->shut && lingers(peer));
}

int fb_test_was_reset(fb_test_peer *peer)
{
    fb_test_run(peer->test);
    return peer->socket->reset;
}

static fb_test_server *find_server(const fb_test *test, const struct fb_address *address)
{
    fb_test_server *server;

    STAILQ_FOREACH (server, &test->servers, link)
        if (fb_address_equal(&server->address, address))
            break;
    return server;
}

fb_test_server *fb_test_serve(fb_test *test, const char *text, fb_test_reply reply)
{
    static const enum fb_sim_answer answers[] = {
        [FB_TEST_ACCEPTS] = FB_SIM_ACCEPTS,
        [FB_TEST_REFUSES] = FB_SIM_REFUSES,
        [FB_TEST_SILENT] = FB_SIM_SILENT,
    };
    struct fb_address address;
    const char *wrong = fb_address_parse(text, 0, &address);
    fb_test_server *server;

    if (wrong != NULL || (address.any.sa_family != AF_UNIX && fb_address_port(&address) == 0))
        fb_kit_misused("fb_test_serve(\"%s\"): %s", text, wrong != NULL ? wrong : "no port");
    server = find_server(test, &address);
    if (server == NULL) {
        server = fb_kit_alloc(sizeof(*server));
        server->test = test;
        server->address = address;
        server->server = fb_sim_server(test->sim, &address.any, address.length);
        STAILQ_INSERT_TAIL(&test->servers, server, link);
    }
    fb_sim_answer(server->server, answers[reply], 0);
    return server;
}

fb_test_peer *fb_test_accept(fb_test_server *server)
{
    struct fb_sim_socket *socket;

    fb_test_run(server->test);
    socket = fb_sim_server_take(server->server);
    return socket != NULL ? fb_kit_add_peer(server->test, socket) : NULL;
}

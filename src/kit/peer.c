/* SPDX-License-Identifier: BSD-2-Clause */
/* The program's ends of the worker's connections: clients, and connections accepted by servers of
 * the simulated kernel. An address has at most one server. The worker finishes all work before a
 * call returns a peer's received bytes. */
#include "kit/tls.h"
#include "net/address_parse.h"
#include "tls/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 40001

static fb_test_peer *kit_add_peer(fb_test *test, struct sim_socket *socket)
{
    fb_test_peer *peer = kit_alloc(sizeof(*peer));

    peer->kind = KIT_PEER;
    peer->test = test;
    peer->socket = socket;
    socket->lends = true; /* memory of exactly the size of the bytes sent */
    STAILQ_INSERT_TAIL(&test->peers, peer, link);
    return peer;
}

void kit_peers_free(fb_test *test)
{
    fb_test_peer *peer;
    fb_test_server *server;

    while ((peer = STAILQ_FIRST(&test->peers)) != NULL) {
        CHECK_KIND(peer, KIT_PEER);
        STAILQ_REMOVE_HEAD(&test->peers, link);
        peer->kind = 0;
        kit_tls_free(peer->tls);
        free(peer);
    }
    while ((server = STAILQ_FIRST(&test->servers)) != NULL) {
        CHECK_KIND(server, KIT_SERVER);
        STAILQ_REMOVE_HEAD(&test->servers, link);
        server->kind = 0;
        free(server);
    }
}

fb_test_peer *fb_test_connect(fb_test *test)
{
    return fb_test_connect_to(test, 0, 0);
}

fb_test_peer *fb_test_connect_to(fb_test *test, unsigned worker, unsigned server)
{
    struct sockaddr_in *address;
    fb_test_peer *peer;

    CHECK_KIND(test, KIT_TEST);
    if (worker >= test->worker_n || server >= kit_options_servers(&test->options))
        kit_misused("fb_test_connect_to(): there is no worker %u, or no server %u", worker, server);
    peer = kit_add_peer(test, sim_client(test->workers[worker].listeners[server]));
    address = (void *)&peer->socket->peer;
    address->sin_port = htons((in_port_t)(FIRST_PORT + test->port_n++ % 20000));
    return peer;
}

static fb_test_server *server_at_address(const fb_test *test, const struct address *address)
{
    fb_test_server *server;

    STAILQ_FOREACH (server, &test->servers, link)
        if (address_equal(&server->address, address))
            break;
    return server;
}

fb_test_server *fb_test_serve(fb_test *test, const char *text, fb_test_reply reply)
{
    static const enum sim_server_answer answers[] = {
        [FB_TEST_ACCEPTS] = SIM_ACCEPTS,
        [FB_TEST_REFUSES] = SIM_REFUSES,
        [FB_TEST_SILENT] = SIM_SILENT,
    };
    struct address address;
    const char *wrong = address_parse(text, 0, &address);
    fb_test_server *server;

    if (wrong != NULL || (address.any.sa_family != AF_UNIX && address_port(&address) == 0))
        kit_misused("fb_test_serve(\"%s\"): %s", text, wrong != NULL ? wrong : "no port");
    server = server_at_address(test, &address);
    if (server == NULL) {
        server = kit_alloc(sizeof(*server));
        server->kind = KIT_SERVER;
        server->test = test;
        server->address = address;
        server->server = sim_server(test->sim, &address.any, address.length);
        STAILQ_INSERT_TAIL(&test->servers, server, link);
    }
    sim_server_answer(server->server, answers[reply], 0);
    return server;
}

fb_test_peer *fb_test_accept(fb_test_server *server)
{
    struct sim_socket *socket;
    fb_test_peer *peer;

    CHECK_KIND(server, KIT_SERVER);
    fb_test_run(server->test);
    socket = sim_server_take(server->server);
    if (socket == NULL)
        return NULL;
    peer = kit_add_peer(server->test, socket);
    peer->is_server = true;
    return peer;
}

void fb_test_say(fb_test_peer *peer, const void *p, size_t n)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->over)
        kit_misused("fb_test_say() of a peer after the end of its half");
    if (n == 0 || peer->socket->closed)
        return;
    if (peer->tls != NULL)
        kit_tls_say(peer, p, n);
    else
        sim_say(peer->socket, p, n);
}

void fb_test_says(fb_test_peer *peer, const char *text)
{
    fb_test_say(peer, text, strlen(text));
}

void fb_test_truncate(fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    if (!peer->over && !peer->socket->closed)
        sim_end(peer->socket);
    peer->over = true;
}

void fb_test_shut(fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->tls != NULL && kit_tls_step(peer->tls) == TLS_DONE)
        kit_tls_say_alert(peer, TLS_CLOSE_NOTIFY);
    fb_test_truncate(peer);
}

void fb_test_reset(fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->socket->closed)
        return;
    sim_reset(peer->socket, ECONNRESET);
    peer->over = true;
}

void fb_test_take(fb_test_peer *peer, size_t n)
{
    sim_set_room(peer->socket, n);
}

/* Lets the worker work, and the peer shake hands. */
static void run_for_peer(fb_test_peer *peer)
{
    if (peer->tls != NULL)
        kit_tls_pump(peer);
    else
        fb_test_run(peer->test);
}

fb_bytes fb_test_heard(fb_test_peer *peer)
{
    CHECK_KIND(peer, KIT_PEER);
    if (peer->tls != NULL) {
        kit_tls_pump(peer);
        return kit_tls_heard(peer->tls);
    }
    fb_test_run(peer->test);
    return (fb_bytes) { (const uint8_t *)sim_sent(peer->socket), peer->socket->sent_n };
}

void fb_test_forget(fb_test_peer *peer)
{
    if (peer->tls != NULL) {
        kit_tls_forget(peer);
        return;
    }
    fb_test_run(peer->test);
    sim_forget_sent(peer->socket);
}

int fb_test_has_ended(fb_test_peer *peer)
{
    run_for_peer(peer);
    return peer->socket->shut || peer->socket->closed ||
           (peer->tls != NULL && kit_tls_is_closed(peer->tls));
}

/* A search for the connection of a descriptor. */
struct search {
    int fd;
    bool lingers;
};

static void search_connection(struct fb_conn *conn, void *arg)
{
    struct search *search = arg;

    if (conn->source.fd == search->fd)
        search->lingers = conn->phase == CONN_LINGERING;
}

/* Whether the worker has closed the connection, and only discards what the peer still sends. */
static bool is_lingering(const fb_test_peer *peer)
{
    struct search search = { .fd = peer->socket->fd };
    struct kit_worker *own;

    KIT_FOREACH_ALIVE(own, peer->test)
    net_each(&own->worker.stream.net, search_connection, &search);
    return search.lingers;
}

int fb_test_is_closed(fb_test_peer *peer)
{
    run_for_peer(peer);
    return peer->socket->closed || (peer->socket->shut && is_lingering(peer));
}

int fb_test_was_reset(fb_test_peer *peer)
{
    run_for_peer(peer);
    return peer->socket->reset;
}

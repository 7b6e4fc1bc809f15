/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that the protocol may connect to: addresses of the simulated kernel with a reply to each
 * connect. An address has at most one server. */
#include "kit/kit.h"
#include "net/address_parse.h"

static fb_test_server *find_server(const fb_test *test, const struct address *address)
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
    server = find_server(test, &address);
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

    CHECK_KIND(server, KIT_SERVER);
    fb_test_run(server->test);
    socket = sim_server_take(server->server);
    return socket != NULL ? kit_peer_add(server->test, socket) : NULL;
}

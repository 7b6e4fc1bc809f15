/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that the protocol may connect to: addresses of the simulated kernel with a reply to each
 * connect. An address has at most one server. */
#include "kit/kit.h"

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
        server->kind = KIT_SERVER;
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

    CHECK_KIND(server, KIT_SERVER);
    fb_test_run(server->test);
    socket = fb_sim_server_take(server->server);
    return socket != NULL ? fb_kit_add_peer(server->test, socket) : NULL;
}

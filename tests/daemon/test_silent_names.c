/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that no server answers, and what becomes of others meanwhile. The test is the server of
 * names. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/name_server.h"
#include "support/test.h"

#include <string.h>
#include <unistd.h>

static struct daemon *start(const struct name_server *server)
{
    return daemon_start_new(1,
        "load_module " MODULES_PATH "/resolves.so; events {}"
        "stream { resolver 127.0.0.1:%d; server { listen 127.0.0.1:$0; resolves; } }",
        server->port);
}

static bool is_about(const struct name_reply *reply, const char *question)
{
    return memcmp(reply->bytes + 12, question, strlen(question) + 1) == 0;
}

/* Questions that nobody answers, and nobody waits for any more, leave the room to others. */
START_TEST(silent_names_block_nobody)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server);
    int client = client_open(daemon->ports[0]);
    struct name_reply reply;
    char text[32];

    daemon_expects(daemon, "could not be resolved: no server has answered within 50 ms");
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof(text), "sA n%d.test\n", i);
        client_send(client, text);
    }
    for (int i = 0; i < 300; i++)
        client_expect(client, "timed out \n");
    client_send(client, "A asked.test\n");
    do /* a slow worker has sent some of the others again */
        name_server_take(&server, &reply);
    while (!is_about(&reply, "\5asked\4test"));
    name_reply_add_a(&reply, 60, 1);
    name_server_send(&server, &reply, 0);
    client_expect(client, "found 192.0.2.1:0 \n");
    close(client);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, silent_names_block_nobody);
}

TEST_MAIN("silent names", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients passed on by a proxy, over real sockets: under each event mechanism, over a reload that
 * begins and ends the PROXY protocol, and in a draining worker. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LINE "PROXY TCP4 203.0.113.9 198.51.100.7 4321 443\r\n"

/* Sends byte by byte, the next after the daemon has received the byte before. */
static void send_apart(int fd, const char *text)
{
    for (char one[2] = ""; *text != '\0'; text++) {
        one[0] = *text;
        client_send(fd, one);
        WAIT_FOR(proc_has_received(fd));
    }
}

START_TEST(under_each_mechanism)
{
    struct daemon *daemon = daemon_create(2);
    int client;

    daemon_configure(daemon,
        "error_log error.log info; events { use %s; } stream {\n"
        "server { listen 127.0.0.1:$0 proxy_protocol; set_real_ip_from 127.0.0.0/8; echo; }\n"
        "server { listen 127.0.0.1:$1 proxy_protocol; return hello; }\n"
        "server { listen unix:$D/socket proxy_protocol; set_real_ip_from unix:; echo; } }",
        mechanisms_name(_i));
    daemon_start(daemon);

    client = client_open(daemon->ports[0]);
    client_send(client, LINE "first");
    client_expect(client, "first");
    client_echo(client, "second");
    close(client);
    daemon_wait_log(daemon, "bytes from/to client:11/11");
    ck_assert_uint_eq(daemon_count_log(daemon, "client: 203.0.113.9, server: "), 1);

    client = client_open(daemon->ports[0]);
    send_apart(client, LINE "a");
    client_expect(client, "a");
    close(client);

    client = client_open_unix(daemon_path(daemon, "socket"));
    client_send(client, LINE "b");
    client_expect(client, "b");
    close(client);
    daemon_wait_log(daemon, "client: 203.0.113.9, server: unix:");

    client = client_open(daemon->ports[1]);
    client_send(client, "PROXY UNKNOWN\r\n");
    ck_assert_str_eq(client_read_all(client), "hello");

    daemon_expects(daemon, "broken header: \"GET /\\x0d\\x0a\" while reading PROXY protocol");
    client = client_open(daemon->ports[1]);
    client_send(client, "GET /\r\n");
    client_expect_gone(client);
    close(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* The address stays; the configuration at the time of the accept serves a client. */
START_TEST(a_reload_begins_and_ends_it)
{
    static const char *const parameters[] = { "", " proxy_protocol", "" };
    struct daemon *daemon = daemon_create(1);
    int clients[3];

    for (int i = 0; i < 3; i++) {
        daemon_configure(daemon,
            "worker_processes 2; events { } stream { server { listen 127.0.0.1:$0%s; echo; } }",
            parameters[i]);
        if (i == 0)
            daemon_start(daemon);
        else
            ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
        for (int j = 0; i > 0 && j < 2; j++) /* old workers accept no more */
            daemon_wait_log(daemon, "gracefully shutting down");
        clients[i] = client_open(daemon->ports[0]);
        if (i == 1)
            client_send(clients[i], "PROXY UNKN");
        else
            client_echo(clients[i], LINE);
        proc_server_of(daemon->pid, clients[i]); /* accepted before the next reload */
    }
    client_send(clients[1], "OWN\r\nhello"); /* in a worker that drains */
    client_expect(clients[1], "hello");
    for (int i = 0; i < 3; i++) {
        client_echo(clients[i], "stays");
        close(clients[i]);
    }
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* A client that says nothing keeps a quitting daemon for the time of the header alone. */
START_TEST(a_drain_ends)
{
    struct daemon *daemon = daemon_start_new(1,
        "events { } stream { server { listen 127.0.0.1:$0 proxy_protocol; echo;\n"
        "proxy_protocol_timeout 700ms; first_byte_timeout off; idle_timeout off; } }");
    int client = client_open(daemon->ports[0]);

    client_send(client, "PROXY");
    daemon_signal(daemon, SIGQUIT);
    client_expect_gone(client);
    close(client);
    ck_assert_int_eq(daemon_wait(daemon), 0);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, under_each_mechanism, 0, mechanisms_count());
    tcase_add_test(tcase, a_reload_begins_and_ends_it);
    tcase_add_test(tcase, a_drain_ends);
}

TEST_MAIN("proxy_protocol", add_tests)

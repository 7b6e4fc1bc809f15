/* SPDX-License-Identifier: BSD-2-Clause */
/* The examples "upper" and "relay", loaded as modules. */
#include "daemon/client.h"
#include "daemon/daemon.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MODULE(name) "load_module " EXAMPLES_PATH "/" name "/.libs/" name ".so;"

/* A daemon that logs all sessions. */
static struct daemon *start_daemon(const char *module, const char *stream)
{
    struct daemon *daemon = daemon_create(3);

    daemon_write(daemon, "forkbeard.conf",
        "error_log error.log info;\npid forkbeard.pid;\n%s\n"
        "events { worker_connections 16; }\nstream {\n%s\n}\n",
        module, stream);
    daemon_start(daemon);
    return daemon;
}

/* Upper */

#define UPPER MODULE("upper"), "server { listen 127.0.0.1:$0; upper; }"

START_TEST(upper_answers)
{
    struct daemon *daemon = start_daemon(UPPER);
    int client = client_open(daemon->ports[0]);

    client_send(client, "hello\n");
    client_expect(client, "HELLO\n");
    client_send(client, "one\n\ntwo, und gr\xc3\xbc\xc3\x9f"
                        "e\nth");
    client_expect(client, "ONE\n\nTWO, UND GR\xc3\xbc\xc3\x9f"
                          "E\n");
    client_send(client, "ree\n");
    client_expect(client, "THREE\n");
    client_send(client, "not a line");
    shutdown(client, SHUT_WR);
    client_expect_end(client);
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(upper_byte_by_byte)
{
    static const char text[] = "each by itself\nand again\n";
    struct daemon *daemon = start_daemon(UPPER);
    int client = client_open(daemon->ports[0]);

    for (const char *p = text; *p != '\0'; p++)
        client_send(client, (char[]) { *p, '\0' });
    client_expect(client, "EACH BY ITSELF\nAND AGAIN\n");
    close(client);
    daemon_finish(daemon);
}
END_TEST

START_TEST(upper_limits_lines)
{
    struct daemon *daemon = start_daemon(UPPER);
    int client = client_open(daemon->ports[0]), other = client_open(daemon->ports[0]);
    char line[1026] = "", answer[1026] = "";

    memset(line, 'x', 1024);
    memset(answer, 'X', 1024);
    line[1024] = answer[1024] = '\n';
    client_send(client, line);
    client_expect(client, answer);
    line[1024] = 'x';
    client_send(client, line);
    client_expect_gone(client);
    client_send(other, "ok\n");
    client_expect(other, "OK\n");
    daemon_wait_log(daemon, "[info]");
    close(client);
    close(other);
    daemon_finish(daemon);
}
END_TEST

/* Relay */

#define RELAY_TO(port)                                                                             \
    MODULE("relay"), "server { listen 127.0.0.1:$0; relay 127.0.0.1:" port "; }"                   \
                     "server { listen 127.0.0.1:$1; echo; }"

START_TEST(relay_passes_bytes)
{
    struct daemon *daemon = start_daemon(RELAY_TO("$1"));
    int client = client_open(daemon->ports[0]);

    client_echo(client, "there and back");
    client_echo(client, "again");
    client_send(client, "the last words");
    shutdown(client, SHUT_WR);
    client_expect(client, "the last words");
    client_expect_end(client);
    close(client);
    daemon_wait_log(
        daemon, "bytes from/to client:33/33, bytes from/to upstream:33/33, client: 127");
    daemon_finish(daemon);
}
END_TEST

/* Bytes sent before there was a server, and the end behind them, are not lost. */
START_TEST(relay_half_close_at_once)
{
    struct daemon *daemon = start_daemon(RELAY_TO("$1"));

    for (int i = 0; i < 20; i++) {
        int client = client_open(daemon->ports[0]);

        client_send(client, "early");
        shutdown(client, SHUT_WR);
        client_expect(client, "early");
        client_expect_end(client);
        close(client);
    }
    for (int i = 0; i < 20; i++)
        daemon_wait_log(daemon, "bytes from/to client:5/5, bytes from/to upstream:5/5");
    daemon_finish(daemon);
}
END_TEST

/* A server that speaks first and closes. */
START_TEST(relay_ends_with_the_server)
{
    struct daemon *daemon =
        start_daemon(MODULE("relay"), "server { listen 127.0.0.1:$0; relay unix:$D/greeting.sock; }"
                                      "server { listen unix:$D/greeting.sock; return hello; }");

    ck_assert_str_eq(client_read_all(client_open(daemon->ports[0])), "hello");
    daemon_wait_log(daemon, "bytes from/to client:0/5, bytes from/to upstream:5/0");
    daemon_finish(daemon);
}
END_TEST

START_TEST(relay_without_a_server)
{
    struct daemon *daemon = start_daemon(RELAY_TO("$2"));
    int client = client_open(daemon->ports[0]);

    client_expect_end(client);
    daemon_wait_log(daemon, "connect() failed (111: Connection refused)");
    daemon_wait_log(daemon, "bytes from/to client:0/0, bytes from/to upstream:0/0");
    close(client);
    daemon_finish(daemon);
}
END_TEST

/* A server that accepts nobody. */
static int listen_on(in_port_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int) { 1 }, sizeof(int)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

/* A client takes two slots. */
START_TEST(relay_without_a_connection)
{
    struct daemon *daemon = daemon_create(2);
    int server = listen_on(daemon->ports[1]), upstream, first, second;

    daemon_configure(daemon,
        MODULE("relay") "events { worker_connections 3; } stream {"
                        "server { listen 127.0.0.1:$0; relay 127.0.0.1:$1; } }");
    daemon_start(daemon);
    first = client_open(daemon->ports[0]);
    upstream = accept(server, NULL, NULL);
    ck_assert_int_ne(upstream, -1);
    second = client_open(daemon->ports[0]);
    client_expect_gone(second);
    daemon_wait_log(daemon, "no connection is left for the server");
    client_send(first, "still here");
    client_expect(upstream, "still here");
    close(second);
    close(first);
    client_expect_end(upstream);
    close(upstream);
    close(server);
    daemon_finish(daemon);
}
END_TEST

START_TEST(relay_times_out)
{
    struct daemon *daemon = start_daemon(MODULE("relay"),
        "relay_timeout 3s; server { listen 127.0.0.1:$0; relay 127.0.0.1:$1; }"
        "server { listen 127.0.0.1:$1; echo; }");
    int client = client_open(daemon->ports[0]);

    client_echo(client, "then silence");
    client_expect_gone(client);
    daemon_wait_log(daemon, "timed out");
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, upper_answers);
    tcase_add_test(tcase, upper_byte_by_byte);
    tcase_add_test(tcase, upper_limits_lines);
    tcase_add_test(tcase, relay_passes_bytes);
    tcase_add_test(tcase, relay_half_close_at_once);
    tcase_add_test(tcase, relay_ends_with_the_server);
    tcase_add_test(tcase, relay_without_a_server);
    tcase_add_test(tcase, relay_without_a_connection);
    tcase_add_test(tcase, relay_times_out);
}

TEST_MAIN("examples", add_tests)

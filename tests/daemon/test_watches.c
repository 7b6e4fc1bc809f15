/* SPDX-License-Identifier: BSD-2-Clause */
/* Watched descriptors of a module, on the real kernel under each event mechanism: echoed datagrams,
 * and a socket closed too early. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"
#include "support/test.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAMS 40

static struct daemon *start_echo(int i, const char *directives)
{
    return daemon_start_new(2,
        "load_module " MODULES_PATH "/udp_echo.so; %s events { use %s; }"
        "stream { server { listen 127.0.0.1:$0; udp_echo $1; } }",
        directives, mechanisms_name(i));
}

/* A socket whose peer is the echo. */
static int open_peer(const struct daemon *daemon)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(daemon->ports[1]),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void expect_datagram(int fd, const char *text)
{
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    char bytes[64] = "";

    ck_assert_int_eq(poll(&entry, 1, (int)patience_ms()), 1);
    ck_assert_int_eq(recv(fd, bytes, sizeof(bytes) - 1, 0), (ssize_t)strlen(text));
    ck_assert_str_eq(bytes, text);
}

/* Datagrams in a single arrival are taken by separate calls. */
START_TEST(datagrams_are_echoed)
{
    struct daemon *daemon = start_echo(_i, "worker_processes 2;");
    int peer = open_peer(daemon), client = client_open(daemon->ports[0]);
    char text[DATAGRAMS][16];

    for (int i = 0; i < DATAGRAMS; i++) {
        snprintf(text[i], sizeof(text[i]), "datagram %d", i);
        ck_assert_int_ne(send(peer, text[i], strlen(text[i]), 0), -1);
    }
    for (int i = 0; i < DATAGRAMS; i++)
        expect_datagram(peer, text[i]);
    client_echo(client, "and a connection");
    close(client);
    close(peer);
    daemon_stop(daemon, SIGQUIT); /* no watch holds it up */
    daemon_finish(daemon);
}
END_TEST

/* The number of a socket closed too early becomes a client's, who is served. The worker hears of
 * the mistake and of the clients in a single turn. */
START_TEST(a_socket_that_was_closed_too_early)
{
    struct daemon *daemon = start_echo(_i, "");
    int peer = open_peer(daemon), clients[3];
    pid_t worker;

    daemon_expects(daemon, "was closed before fb_unwatch(), by protocol \"udp_echo\"");
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    proc_freeze(worker);
    ck_assert_int_ne(send(peer, "close", 5, 0), -1);
    for (int i = 0; i < 3; i++)
        clients[i] = client_open(daemon->ports[0]);
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    for (int i = 0; i < 3; i++)
        client_echo(clients[i], "served");
    for (int i = 0; i < 3; i++) {
        client_echo(clients[i], "still served");
        close(clients[i]);
    }
    daemon_stop(daemon, SIGTERM);
    ck_assert_uint_eq(daemon_count_log(daemon, "was closed before fb_unwatch()"), 1);
    close(peer);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_callback_that_takes_long_is_named)
{
    struct daemon *daemon = daemon_start_new(2,
        "load_module " MODULES_PATH "/udp_echo.so; events { stall_threshold 100ms; }"
        "stream { server { listen 127.0.0.1:$0; udp_echo $1; } }");
    int peer = open_peer(daemon);

    daemon_expects(daemon, "and blocked the worker");
    ck_assert_int_ne(send(peer, "hang", 4, 0), -1);
    expect_datagram(peer, "hang");
    daemon_wait_log(daemon, "callback \"ready\" of protocol \"udp_echo\" took ");
    close(peer);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, datagrams_are_echoed, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_socket_that_was_closed_too_early, 0, mechanisms_count());
    tcase_add_loop_test(tcase, a_callback_that_takes_long_is_named, 0, 1);
}

TEST_MAIN("watches", add_tests)

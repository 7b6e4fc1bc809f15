/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker in an attacker's hands turns on the listening sockets that all workers share, and dies.
 * The listeners serve again, the master answers all the time, and a reload, an end and the next
 * start are as ever, with the service manager's sockets, too. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "sandbox/confine.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PORTS 2
#define SLOW_CLIENTS 8
#define UNREAD 30000

static const char *const modes[] = { "on", "strict" };

/* Letters for a worker's attacks: end listeners, connect them, set options, or several at once. */
static const char *const attacks[] = { "l", "c", "p", "pc" };

#define CASES ((int)(2 * 2 * (sizeof(attacks) / sizeof(attacks[0]))))

/* The manager's socket, open until the test's end. */
static void pass_port(struct daemon *daemon, in_port_t port)
{
    static const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    daemon->passed[daemon->passed_n++] = fd;
}

static void check_status(struct daemon *daemon)
{
    ck_assert(control_is_ok(control_ask(daemon, "status")));
}

/* A client is served once the port listens. What the attacker has connected may be in the way as a
 * client of its own. */
static bool is_served(struct daemon *daemon, int port)
{
    int client = client_try(daemon->ports[port]);

    check_status(daemon);
    if (client == -1)
        return false;
    client_echo(client, "123");
    close(client);
    return true;
}

static void check_serves(struct daemon *daemon)
{
    for (int port = 0; port < PORTS; port++)
        for (int i = 0; i < 3; i++)
            WAIT_FOR(is_served(daemon, port));
}

/* A client with a small receive buffer. */
static int open_slow(in_port_t port)
{
    static const int room = 4096;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Clients send, end their half and do not read: close() must not wait. */
static void have_slow_clients(struct daemon *daemon)
{
    static char bytes[UNREAD + 1];
    int clients[SLOW_CLIENTS];

    memset(bytes, '.', UNREAD);
    for (int i = 0; i < SLOW_CLIENTS; i++) {
        clients[i] = open_slow(daemon->ports[i % PORTS]);
        client_send(clients[i], bytes);
        ck_assert_int_eq(shutdown(clients[i], SHUT_WR), 0);
    }
    for (int i = 0; i < SLOW_CLIENTS; i++) /* each is answered, and closed */
        WAIT_FOR(recv(clients[i], bytes, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
    check_serves(daemon);
    for (int i = 0; i < SLOW_CLIENTS; i++)
        close(clients[i]);
}

static void attack(struct daemon *daemon, const char *letters)
{
    int attacker = client_open(daemon->ports[0]);

    daemon_expects(daemon, "exited on signal 9");
    daemon_expects(daemon, "was shut down, and listens again (");
    daemon_expects(daemon, "were changed, and are put back: ");
    client_echo(attacker, "123");
    client_send(attacker, letters);
    client_send(attacker, "k");
    daemon_wait_log(daemon, "exited on signal 9");
    check_status(daemon);
    close(attacker);
}

/* _i: the mode, whether the sockets were passed, and the attack. */
START_TEST(listeners_outlive_an_attacker)
{
    struct daemon *daemon = daemon_create(PORTS);
    bool passed = _i / 2 % 2 == 1;

    for (int port = 0; passed && port < PORTS; port++)
        pass_port(daemon, daemon->ports[port]);
    daemon_configure(daemon,
        "load_module " MODULES_PATH "/spoiler.so;\n"
        "worker_processes 2; sandbox %s; events {}\n"
        "stream { server { listen 127.0.0.1:$0; listen 127.0.0.1:$1; spoiler; } }\n",
        modes[_i % 2]);
    daemon_start(daemon);
    check_serves(daemon);
    attack(daemon, attacks[_i / 4]);
    check_serves(daemon);
    have_slow_clients(daemon);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    check_serves(daemon);
    attack(daemon, attacks[_i / 4]);
    check_serves(daemon);
    daemon_stop(daemon, SIGTERM);
    for (unsigned i = 0; i < daemon->passed_n; i++)
        close(daemon->passed[i]);
    daemon_finish(daemon);
}
END_TEST

/* The next start takes sockets of the service manager as a worker has left them. */
START_TEST(sockets_of_the_manager_are_mended_at_a_start)
{
    static const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
    static const struct linger slow = { .l_onoff = 1, .l_linger = 3600 };
    struct daemon *daemon = daemon_create(PORTS);
    struct sockaddr_in away = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd;

    for (int port = 0; port < PORTS; port++)
        pass_port(daemon, daemon->ports[port]);
    fd = daemon->passed[0];
    ck_assert_int_eq(connect(fd, &nowhere, sizeof(nowhere)), 0);
    if (_i == 1) { /* to the other listener */
        away.sin_port = htons(daemon->ports[1]);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&away, sizeof(away)), 0);
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow)), 0);
    }
    daemon_configure(daemon,
        "worker_processes 2; events {}\n"
        "stream { server { listen 127.0.0.1:$0; listen 127.0.0.1:$1; echo; } }\n");
    daemon_start(daemon);
    check_serves(daemon);
    daemon_stop(daemon, SIGQUIT);
    for (unsigned i = 0; i < daemon->passed_n; i++)
        close(daemon->passed[i]);
    daemon_finish(daemon);
}
END_TEST

/* A worker without a filter arms the listeners: the serving workers do not wait. */
START_TEST(nobody_waits_for_a_client)
{
    struct daemon *daemon = daemon_start_new(PORTS,
        "load_module " MODULES_PATH "/spoiler.so;\n"
        "worker_processes 2; worker_watchdog 0; sandbox off; events {}\n"
        "stream { server { listen 127.0.0.1:$0; listen 127.0.0.1:$1; spoiler; } }\n");
    int attacker = client_open(daemon->ports[0]);

    client_echo(attacker, "g");
    have_slow_clients(daemon);
    close(attacker);
    daemon_stop(daemon, SIGTERM);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    int error;

    resources_fixture(tcase);
    if (sandbox_seccomp_lacks(&error) == NULL && sandbox_landlock_lacks(&error) == NULL)
        tcase_add_loop_test(tcase, listeners_outlive_an_attacker, 0, CASES);
    tcase_add_test(tcase, nobody_waits_for_a_client);
    tcase_add_loop_test(tcase, sockets_of_the_manager_are_mended_at_a_start, 0, 2);
}

TEST_MAIN("hostile_listeners", add_tests)

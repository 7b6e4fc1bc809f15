/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers shared by clients in turns, and connections of a worker, under each
 * mechanism. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/mechanisms.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 30

/* A daemon with clients served by itself, or by a server on a second port. */
static struct daemon *start_pooler(const char *directives, const char *use, in_port_t server)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon,
        "load_module " MODULES_PATH "/%s;\nerror_log info.log info;\nworker_processes 1;\n"
        "events { use %s; }\nstream {\n    server { listen 127.0.0.1:$0; pooler 127.0.0.1:%d; }\n"
        "    server { listen 127.0.0.1:$1; echo; }\n}\n",
        directives, use, server != 0 ? server : daemon->ports[1]);
    daemon_owns(daemon, "info.log");
    daemon_start(daemon);
    return daemon;
}

START_TEST(clients_take_turns)
{
    struct daemon *daemon = start_pooler("pooler.so", mechanisms_name(_i), 0);
    int fds[CLIENTS];
    const char *at;
    char line[32];
    unsigned n = 0;

    for (int i = 0; i < CLIENTS; i++)
        fds[i] = client_open(daemon->ports[0]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            snprintf(line, sizeof(line), "line %d of %d\n", round, i);
            client_send(fds[i], line);
        }
        for (int i = 0; i < CLIENTS; i++) {
            snprintf(line, sizeof(line), "line %d of %d\n", round, i);
            client_expect(fds[i], line);
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    at = daemon_text(daemon, "info.log");
    while ((at = strstr(at, "client 127.0.0.7:")) != NULL) {
        at++;
        n++;
    }
    ck_assert_uint_eq(n, 1);
    daemon_finish(daemon);
}
END_TEST

/* Listens, and never accepts: the kernel does. */
static int listen_silently(in_port_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001) };
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* The worker's own connection, which stays open, does not keep the worker. */
START_TEST(a_worker_that_drains_ends)
{
    in_port_t port;
    int listener = listen_silently(&port), fd;
    struct daemon *daemon = start_pooler("pooler.so", mechanisms_name(0), port);
    pid_t old;

    fd = client_open(daemon->ports[0]);
    WAIT_FOR((old = proc_server_of(daemon->pid, fd)) > 0);
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(proc_child_n(daemon->pid) == 2);
    ck_assert_int_eq(proc_parent(old), daemon->pid);
    close(fd);
    WAIT_FOR(proc_child_n(daemon->pid) == 1);
    close(listener);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_protocol_has_to_say_that_it_binds)
{
    struct daemon *daemon = start_pooler("pooler_bare.so;\nsandbox strict", mechanisms_name(0), 0);
    int fd = client_open(daemon->ports[0]);

    daemon_expects(daemon, "bind() to 127.0.0.7:0 failed");
    daemon_expects(daemon, "the server failed");
    client_send(fd, "a line\n");
    client_expect_gone(fd);
    daemon_wait_log(daemon, "bind() to 127.0.0.7:0 failed");
    close(fd);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_protocol_has_to_say_that_it_is_transparent)
{
    struct daemon *daemon = start_pooler("pooler_foreign.so", mechanisms_name(0), 0);
    int fd = client_open(daemon->ports[0]);

    daemon_expects(daemon, "setsockopt(IP_TRANSPARENT) failed: cannot connect from 127.0.0.7");
    daemon_expects(daemon, "the server failed");
    client_send(fd, "a line\n");
    client_expect_gone(fd);
    daemon_wait_log(daemon,
        "setsockopt(IP_TRANSPARENT) failed: cannot connect from 127.0.0.7 (1: Operation not "
        "permitted)");
    close(fd);
    daemon_finish(daemon);
}
END_TEST

static uint64_t capabilities_of(pid_t pid)
{
    const char *found = strstr(proc_text(pid, "status"), "CapPrm:");

    ck_assert_ptr_nonnull(found);
    return strtoull(found + strlen("CapPrm:"), NULL, 16);
}

#define NET_RAW ((uint64_t)1 << 13)

/* Workers keep the one capability, where the master is root with the capability. */
START_TEST(rights_that_a_directive_asks_for)
{
    struct daemon *daemon;
    pid_t worker;
    int fd;

    if (geteuid() != 0 || !(capabilities_of(getpid()) & NET_RAW))
        return;
    daemon = start_pooler("pooler_asks.so;\nsandbox strict", mechanisms_name(0), 0);
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    ck_assert_uint_eq(capabilities_of(worker), NET_RAW);
    fd = client_open(daemon->ports[0]);
    client_send(fd, "a line\n");
    client_expect(fd, "a line\n");
    close(fd);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_right_that_nobody_knows)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "load_module " MODULES_PATH "/pooler_newer.so;\nstream { server { listen 127.0.0.1:$0; "
        "pooler 127.0.0.1:1; } }\n");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err,
        "protocol \"pooler\" needs a right that this version of forkbeard does not know"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tc)
{
    resources_fixture(tc);
    tcase_add_loop_test(tc, clients_take_turns, 0, mechanisms_count());
    tcase_add_test(tc, a_worker_that_drains_ends);
    tcase_add_test(tc, a_protocol_has_to_say_that_it_binds);
    tcase_add_test(tc, a_protocol_has_to_say_that_it_is_transparent);
    tcase_add_test(tc, rights_that_a_directive_asks_for);
    tcase_add_test(tc, a_right_that_nobody_knows);
}

TEST_MAIN("pooler", add_tests)

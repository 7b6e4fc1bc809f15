/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets passed by a service manager at the start: served, kept, and never unlinked. */
#include "base/compiler.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MODE(i) ((i) == 0 ? "worker_processes 2;" : "master_process off;")

static void pass_socket(struct daemon *daemon, int fd)
{
    ck_assert_uint_lt(daemon->passed_n, PASSED_MAX);
    ck_assert_int_ne(fd, -1);
    daemon->passed[daemon->passed_n++] = fd;
}

/* The manager's socket, open until the test's end. */
static int pass_port(struct daemon *daemon, in_port_t port, bool reuseport)
{
    static const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), option = reuseport;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &option, sizeof(option)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    pass_socket(daemon, fd);
    return fd;
}

static int pass_path(struct daemon *daemon, const char *name)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, name));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    pass_socket(daemon, fd);
    return fd;
}

static void finish_daemon(struct daemon *daemon)
{
    for (unsigned i = 0; i < daemon->passed_n; i++)
        close(daemon->passed[i]);
    daemon_finish(daemon);
}

static void echo_once(in_port_t port)
{
    int client = client_open(port);

    client_echo(client, "served");
    close(client);
}

static const char *const ways[] = {
    "listen 127.0.0.1:$0",              /* by address */
    "listen fd:web",                    /* by name */
    "listen fd:3 backlog=7 rcvbuf=64k", /* by number, with parameters */
};

/* _i: the way, and the mode. A second bind would fail: the manager listens without SO_REUSEPORT. */
START_TEST(is_served)
{
    struct daemon *daemon = daemon_create(1);
    int waiting, fd = pass_port(daemon, daemon->ports[0], false);

    daemon->passed_names = "web";
    daemon_configure(
        daemon, "%s events {} stream { server { %s; echo; } }\n", MODE(_i % 2), ways[_i / 2]);
    waiting = client_open(daemon->ports[0]); /* before there is a daemon */
    client_send(waiting, "patient");
    daemon_start(daemon);
    client_expect(waiting, "patient");
    close(waiting);
    echo_once(daemon->ports[0]);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0); /* the description is shared */
    ck_assert_int_eq(client_error(daemon->ports[0]), 0);  /* the manager listens on */
    finish_daemon(daemon);
}
END_TEST

/* _i: the mode. */
START_TEST(a_path_is_the_managers)
{
    struct daemon *daemon = daemon_create(0);
    int client;

    pass_path(daemon, "socket");
    daemon_owns(daemon, "socket");
    daemon_configure(
        daemon, "%s events {} stream { server { listen unix:$D/socket; echo; } }\n", MODE(_i));
    daemon_start(daemon);
    client = client_open_unix(daemon_path(daemon, "socket"));
    client_echo(client, "served");
    close(client);
    daemon_stop(daemon, SIGTERM);
    ck_assert(daemon_has(daemon, "socket"));
    finish_daemon(daemon);
}
END_TEST

/* Several sockets of one name, on different addresses. */
START_TEST(a_name_may_stand_for_several)
{
    struct daemon *daemon = daemon_create(2);
    int client;

    pass_port(daemon, daemon->ports[0], false);
    pass_path(daemon, "socket");
    pass_port(daemon, daemon->ports[1], false);
    daemon->passed_names = "web:web:other";
    daemon_owns(daemon, "socket");
    daemon_configure(daemon, "events {} stream { server { listen fd:web; echo; } "
                             "server { listen fd:other; return other; } }\n");
    daemon_start(daemon);
    echo_once(daemon->ports[0]);
    client = client_open_unix(daemon_path(daemon, "socket"));
    client_echo(client, "served");
    close(client);
    ck_assert_str_eq(client_read_all(client_open(daemon->ports[1])), "other");
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

static unsigned long inode_of(int fd)
{
    char name[32];
    unsigned long inode = 0;

    snprintf(name, sizeof(name), "fd/%d", fd);
    sscanf(proc_link(getpid(), name), "socket:[%lu]", &inode);
    ck_assert_uint_ne(inode, 0);
    return inode;
}

static void reload_daemon(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
}

/* An adopted socket cannot be replaced: a configuration without the socket does not close it. */
START_TEST(a_reload_keeps_what_it_does_not_want)
{
    struct daemon *daemon = daemon_create(2);
    unsigned long inode = inode_of(pass_port(daemon, daemon->ports[0], false));
    unsigned before;
    int client;

    daemon->passed_names = "web";
    daemon_configure(daemon, "events {} stream { server { listen fd:web; echo; } }\n");
    daemon_start(daemon);
    before = proc_descriptors(daemon->pid);
    echo_once(daemon->ports[0]);
    for (int i = 0; i < 3; i++) {
        daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$1; echo; } }\n");
        reload_daemon(daemon);
        WAIT_FOR(proc_child_n(daemon->pid) == 1);
        ck_assert_uint_eq(proc_holder(daemon->pid, inode), 0); /* no worker has it */
        client = client_open(daemon->ports[0]);
        client_send(client, "waits");
        echo_once(daemon->ports[1]);
        daemon_configure(daemon, "events {} stream { server { listen fd:3; echo; } }\n");
        reload_daemon(daemon);
        client_expect(client, "waits");
        close(client);
        WAIT_FOR(proc_child_n(daemon->pid) == 1);
    }
    WAIT_FOR(proc_descriptors(daemon->pid) == before);
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

/* _i: the mode. */
START_TEST(unwanted_ones_are_named)
{
    struct daemon *daemon = daemon_create(2);
    int client;

    pass_port(daemon, daemon->ports[0], false);
    daemon->passed_names = "web";
    daemon_expects(daemon, "which no \"listen\" uses: it stays open");
    daemon_configure(
        daemon, "%s events {} stream { server { listen 127.0.0.1:$1; echo; } }\n", MODE(_i));
    daemon_start(daemon);
    daemon_wait_log(daemon, "[warn]");
    daemon_wait_log(daemon, "the service manager has passed socket 3 (\"web\"), 127.0.0.1:");
    client = client_open(daemon->ports[0]);
    echo_once(daemon->ports[1]);
    ck_assert(client_is_quiet(client));
    close(client);
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

/* A socket of ours from the manager's store is drained when no listener wants it. _i: the mode. */
START_TEST(stored_ones_are_drained)
{
    struct daemon *daemon = daemon_create(2);
    int wanted, unwanted, silent;

    pass_port(daemon, daemon->ports[0], false);
    pass_port(daemon, daemon->ports[1], false);
    pass_path(daemon, "socket");
    daemon->passed_names = "forkbeard:forkbeard:forkbeard";
    daemon_configure(
        daemon, "%s events {} stream { server { listen 127.0.0.1:$0; echo; } }\n", MODE(_i));
    wanted = client_open(daemon->ports[0]);
    unwanted = client_open(daemon->ports[1]);
    silent = client_open(daemon->ports[1]);
    client_send(unwanted, "in vain");
    daemon_start(daemon);
    client_echo(wanted, "served");
    client_expect_end(unwanted);
    client_expect_end(silent);
    daemon_wait_log(daemon,
        "was stored by the service manager, but no \"listen\" uses it any more: "
        "the socket and its 2 waiting clients were closed");
    ck_assert(!daemon_has(daemon, "socket")); /* ours */
    close(wanted);
    close(unwanted);
    close(silent);
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

/* _i: fewer sockets than workers, or as many. */
START_TEST(reuseport_takes_what_is_passed)
{
    struct daemon *daemon = daemon_create(1);

    pass_port(daemon, daemon->ports[0], true);
    if (_i == 1)
        pass_port(daemon, daemon->ports[0], true);
    else
        daemon_expects(daemon, "the service manager has passed 1 sockets for 2 workers");
    daemon_configure(daemon, "worker_processes 2; events {} "
                             "stream { server { listen 127.0.0.1:$0 reuseport; echo; } }\n");
    daemon_start(daemon);
    for (int i = 0; i < 20; i++)
        echo_once(daemon->ports[0]);
    ck_assert_uint_eq(daemon_count_log(daemon, "is ignored: the service manager"), _i == 0);
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

START_TEST(what_is_anothers_is_left_alone)
{
    struct daemon *daemon = daemon_create(2);

    pass_port(daemon, daemon->ports[1], false);
    daemon->passed_to = 1;
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n");
    daemon_start(daemon);
    echo_once(daemon->ports[0]);
    ck_assert_uint_eq(daemon_count_log(daemon, "service manager"), 0);
    daemon_stop(daemon, SIGTERM);

    daemon_configure(daemon, "events {} stream { server { listen fd:3; echo; } }\n");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err,
        "invalid value \"fd:3\" in \"listen\" directive: the service manager has passed no such "
        "socket, it has passed: none in "));
    finish_daemon(daemon);
}
END_TEST

static const struct {
    const char *listen, *names, *message;
} mistakes[] = {
    { "fd:wbe", "web", "no such socket, it has passed: 3 (\"web\") 127.0.0.1:" },
    { "fd:4", NULL, "no such socket, it has passed: 3 (\"unknown\") 127.0.0.1:" },
    { "fd:forkbeard", "forkbeard", "no such socket, it has passed: none" },
    { "fd:", "web", "expected the name or the number of a socket" },
    { "fd:web; listen fd:3", "web", "duplicate \"listen\" of 127.0.0.1:" },
};

START_TEST(mistakes_are_named)
{
    struct daemon *daemon = daemon_create(1);

    pass_port(daemon, daemon->ports[0], false);
    daemon->passed_names = mistakes[_i].names;
    daemon_configure(
        daemon, "events {} stream { server { listen %s; echo; } }\n", mistakes[_i].listen);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", NULL), 1);
    ck_assert_msg(strstr(daemon->err, mistakes[_i].message) != NULL, "%s", daemon->err);
    finish_daemon(daemon);
}
END_TEST

/* The process of a check is passed nothing. */
START_TEST(a_check_only_warns)
{
    struct daemon *daemon = daemon_create(0);

    daemon_configure(daemon, "events {} stream { server { listen fd:web; echo; } }\n");
    ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_ptr_nonnull(strstr(daemon->err, "[warn] \"fd:web\" is not checked: only the daemon"));
    finish_daemon(daemon);
}
END_TEST

static int a_datagram_socket(void)
{
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int a_silent_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int a_file(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static const struct {
    int (*open)(void);
    const char *message;
} useless[] = {
    { a_datagram_socket, "cannot be used: the socket is not a stream socket" },
    { a_silent_socket, "cannot be used: the socket does not listen" },
    { a_file, "cannot be used: the descriptor is not a socket" },
};

START_TEST(useless_ones_end_the_start)
{
    struct daemon *daemon = daemon_create(1);

    pass_socket(daemon, useless[_i].open());
    daemon->passed_names = "odd";
    daemon_configure(daemon, "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n");
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", NULL), 1);
    ck_assert_ptr_nonnull(strstr(daemon->err, "descriptor 3 (\"odd\")"));
    ck_assert_msg(strstr(daemon->err, useless[_i].message) != NULL, "%s", daemon->err);

    daemon->passed_names = "forkbeard"; /* the daemon could never start again otherwise */
    daemon_expects(daemon, "the descriptor was closed");
    daemon_start(daemon);
    echo_once(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    finish_daemon(daemon);
}
END_TEST

/* The next binary inherits the sockets with their names and numbers, unused sockets too. */
START_TEST(they_outlive_the_binary)
{
    struct daemon *daemon = daemon_create(2);
    int client;

    pass_port(daemon, daemon->ports[0], false);
    pass_path(daemon, "socket");
    pass_port(daemon, daemon->ports[1], false);
    daemon->passed_names = "web:local:spare";
    daemon_expects(daemon, "which no \"listen\" uses: it stays open");
    daemon_owns(daemon, "socket");
    daemon_configure(daemon, "events {} stream { server { listen fd:web; listen fd:4; echo; } }");
    daemon_start(daemon);
    upgrade_roll_back(daemon, upgrade_start(daemon));
    upgrade_complete(daemon, upgrade_start(daemon));
    echo_once(daemon->ports[0]);
    client = client_open_unix(daemon_path(daemon, "socket"));
    client_echo(client, "served");
    close(client);
    daemon_configure(daemon, "events {} stream { server { listen fd:spare; echo; } }");
    reload_daemon(daemon);
    echo_once(daemon->ports[1]);
    upgrade_complete(daemon, upgrade_start(daemon));
    daemon_configure(
        daemon, "events {} stream { server { listen fd:web; listen fd:local; echo; } }");
    reload_daemon(daemon);
    echo_once(daemon->ports[0]);
    daemon_stop(daemon, SIGTERM);
    ck_assert(daemon_has(daemon, "socket"));
    finish_daemon(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, is_served, 0, 2 * (int)countof(ways));
    tcase_add_loop_test(tcase, a_path_is_the_managers, 0, 2);
    tcase_add_test(tcase, a_name_may_stand_for_several);
    tcase_add_test(tcase, a_reload_keeps_what_it_does_not_want);
    tcase_add_loop_test(tcase, unwanted_ones_are_named, 0, 2);
    tcase_add_loop_test(tcase, stored_ones_are_drained, 0, 2);
    tcase_add_loop_test(tcase, reuseport_takes_what_is_passed, 0, 2);
    tcase_add_test(tcase, they_outlive_the_binary);
    tcase_add_test(tcase, what_is_anothers_is_left_alone);
    tcase_add_loop_test(tcase, mistakes_are_named, 0, (int)countof(mistakes));
    tcase_add_test(tcase, a_check_only_warns);
    tcase_add_loop_test(tcase, useless_ones_end_the_start, 0, (int)countof(useless));
}

TEST_MAIN("activation", add_tests)

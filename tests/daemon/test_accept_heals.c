/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting goes on: beside stopped workers, with a damaged accept mutex, on listeners that were
 * shut down. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WORKERS 4
#define SPOILER "load_module " MODULES_PATH "/spoiler.so;\n"

static const char *const modes[] = { "", "multi_accept on; accept_mutex_delay 50ms;",
    "accept_mutex off;", "accept_mutex off; use poll;", "use poll; accept_mutex_delay 50ms;",
    "use select; accept_mutex_delay 50ms;" };

#define MODES ((int)(sizeof(modes) / sizeof(modes[0])))

/* Every client is served, though the server of the client before is stopped. */
START_TEST(a_stopped_worker_keeps_nobody_waiting)
{
    struct daemon *daemon = daemon_start_new(1,
        "worker_processes 4; events { %s } stream { server { listen 127.0.0.1:$0; echo; } }",
        modes[_i]);
    pid_t stopped[WORKERS - 1];
    int clients[WORKERS];

    for (int n = 0; n < WORKERS; n++) {
        clients[n] = client_open(daemon->ports[0]);
        client_echo(clients[n], "served");
        if (n == WORKERS - 1)
            break;
        stopped[n] = proc_server_of(daemon->pid, clients[n]);
        proc_freeze(stopped[n]);
    }
    for (int n = 0; n < 20; n++) { /* the remaining worker needs no bound */
        int client = client_open(daemon->ports[0]);

        client_echo(client, "at once");
        close(client);
    }
    for (int n = 0; n < WORKERS - 1; n++)
        ck_assert_int_eq(kill(stopped[n], SIGCONT), 0);
    for (int n = 0; n < WORKERS; n++) {
        client_echo(clients[n], "again");
        close(clients[n]);
    }
    ck_assert_uint_eq(daemon_count_log(daemon, "[alert]"), 0); /* nothing was damaged */
    daemon_finish(daemon);
}
END_TEST

static int open_served(const struct daemon *daemon)
{
    int client = client_open(daemon->ports[0]);

    client_echo(client, "123"); /* no letter, which might be a command */
    return client;
}

static struct daemon *start_spoiled(const char *main, const char *events)
{
    struct daemon *daemon = daemon_start_new(1,
        SPOILER "%s events { %s } stream { server { listen 127.0.0.1:$0; spoiler; } }", main,
        events);

    daemon_expects(daemon, "the accept mutex was damaged");
    return daemon;
}

#define MENDED "the accept mutex was damaged, and was mended by worker process "
#define GIVEN_UP "the accept mutex was damaged again, generation "

/* Makes a worker write a wrong owner, which keeps no client waiting. */
static void forge_owner(struct daemon *daemon)
{
    int client = open_served(daemon);

    client_echo(client, "o");
    close(client);
    close(open_served(daemon));
}

/* A worker reports damage once in a second at most. */
static bool is_given_up(struct daemon *daemon)
{
    forge_owner(daemon);
    return daemon_count_log(daemon, GIVEN_UP "1 goes on without the mutex") > 0;
}

/* Damaged twice, the mutex is given up, with a single log line; a reload brings it back. */
START_TEST(a_forged_owner_harms_nobody)
{
    struct daemon *daemon = start_spoiled("worker_processes 4;", "use poll;");
    pid_t workers[WORKERS];

    forge_owner(daemon);
    daemon_wait_log(daemon, MENDED);
    WAIT_FOR(is_given_up(daemon));
    for (int i = 0; i < 3; i++)
        forge_owner(daemon);
    /* a later worker goes on without, too */
    daemon_expects(daemon, "exited on signal 9");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, WORKERS), WORKERS);
    for (int i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(kill(workers[i], SIGKILL), 0);
        daemon_wait_log(daemon, "exited on signal 9");
        daemon_wait_log(daemon, "start worker process");
        close(open_served(daemon));
    }
    ck_assert_uint_eq(daemon_count_log(daemon, MENDED), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, GIVEN_UP), 1);

    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "gracefully shutting down");
    for (int i = 0; i < WORKERS; i++)
        daemon_wait_log(daemon, "exited with code 0");
    forge_owner(daemon); /* the latest forged owner may have been mended already */
    WAIT_FOR(daemon_count_log(daemon, MENDED) == 2);
    daemon_finish(daemon);
}
END_TEST

/* Clients are served while a thread of a worker overwrites the owner all the time, by names of all
 * or by its own. */
START_TEST(no_forger_is_fast_enough)
{
    struct daemon *daemon = start_spoiled("worker_processes 4;", modes[4 + _i % 2]);
    int forger = open_served(daemon);
    int64_t until = now_ms() + 1500;

    client_echo(forger, _i < 2 ? "f" : "h");
    while (now_ms() < until)
        close(open_served(daemon));
    client_echo(forger, "s");
    close(forger);
    ck_assert_uint_le(daemon_count_log(daemon, "the accept mutex was damaged"), 2);
    daemon_finish(daemon);
}
END_TEST

/* Configurations whose listeners are shut down. */
static const struct {
    const char *main, *events, *parameter;
} ways[] = {
    { "worker_processes 4;", "", "" },
    { "worker_processes 4; sandbox strict;", "multi_accept on;", "" },
    { "worker_processes 4;", "accept_mutex off;", "" },
    { "worker_processes 3;", "accept_mutex off;", "reuseport" },
    { "worker_processes 3;", "use poll;", "" },
    { "worker_processes 2;", "use select; accept_mutex off;", "" },
    { "worker_processes 1;", "", "" },
    { "master_process off;", "", "" },
};

#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static int try_unix(const struct daemon *daemon)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon_path(daemon, "socket"));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A client of the port (or -1: the path), once it is listened on again. */
static int open_again(const struct daemon *daemon, int port)
{
    int client;

    WAIT_FOR((client = port == -1 ? try_unix(daemon) : client_try(daemon->ports[port])) != -1);
    client_echo(client, "again");
    return client;
}

/* Waits until new clients see the shutdown of a listener. */
static void spoil(struct daemon *daemon, int port, const char *letter)
{
    int client = open_again(daemon, port);

    client_echo(client, letter);
    close(client);
}

START_TEST(a_listener_that_was_shut_down_listens_again)
{
    struct daemon *daemon = daemon_start_new(3,
        SPOILER "%s events { %s }"
                "stream { server { listen 127.0.0.1:$0 %s; spoiler; }"
                " server { listen unix:$D/socket; spoiler; }"
                " server { listen 127.0.0.1:$1 bind; listen *:$1; spoiler; } }",
        ways[_i].main, ways[_i].events, ways[_i].parameter);

    daemon_expects(daemon, "was shut down, and listens again (");
    for (unsigned n = 0; n < 3; n++) {
        spoil(daemon, (int)n - 1, n < 2 ? "l" : "r"); /* all of them */
        for (int port = -1; port < 2; port++)
            for (int i = 0; i < 6; i++)
                close(open_again(daemon, port));
    }
    ck_assert_uint_ge(daemon_count_log(daemon, "127.0.0.1:"), 1);
    ck_assert_uint_ge(daemon_count_log(daemon, "/socket was shut down, and listens again (1)"), 1);
    ck_assert_uint_eq(daemon_count_log(daemon, "[emerg]"), 0);
    ck_assert(daemon_has(daemon, "socket"));
    if (strstr(ways[_i].main, "master_process off") == NULL) {
        daemon_signal(daemon, SIGHUP);
        daemon_wait_log(daemon, "exited with code 0");
        for (int port = -1; port < 2; port++)
            close(open_again(daemon, port));
    }
    daemon_stop(daemon, SIGQUIT);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

/* Two masters serve the path; the last of the two keeps it. */
START_TEST(a_listener_of_two_masters)
{
    struct daemon *daemon = daemon_start_new(1,
        SPOILER "worker_processes 2; events {} stream { server { listen 127.0.0.1:$0;"
                " listen unix:$D/socket; spoiler; } }");
    pid_t new = upgrade_start(daemon);

    daemon_expects(daemon, "was shut down, and listens again (");
    for (int i = 0; i < 4; i++)
        spoil(daemon, 0, "l");
    close(open_again(daemon, -1));
    daemon_expects(daemon, "was deleted or replaced: it is bound again"); /* the new one's end */
    if (_i == 0)
        upgrade_complete(daemon, new);
    else
        upgrade_roll_back(daemon, new);
    for (int i = 0; i < 4; i++)
        close(open_again(daemon, -1));
    daemon_stop(daemon, SIGQUIT);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

/* A generation starts while the listeners are shut down: it has the path's socket too, or has bound
 * the path again, which was deleted. */
START_TEST(a_listener_of_two_generations)
{
    struct daemon *daemon = daemon_start_new(2,
        SPOILER "load_module " MODULES_PATH "/hangs.so; worker_processes 1; events {} stream {"
                " server { listen 127.0.0.1:$0; listen unix:$D/socket; spoiler; }"
                " server { listen 127.0.0.1:$1; hangs; hangs_while $D/late; } }");

    daemon_expects(daemon, "was shut down, and listens again (");
    daemon_write(daemon, "late", "%s", "");
    if (_i == 1) {
        daemon_expects(daemon, "was deleted or replaced: it is bound again");
        ck_assert_int_eq(unlink(daemon_path(daemon, "socket")), 0);
    }
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(daemon_count_log(daemon, "start worker process") == 2);
    spoil(daemon, 0, "l");
    close(open_again(daemon, 0));
    ck_assert_int_eq(unlink(daemon_path(daemon, "late")), 0);
    daemon_wait_log(daemon, "generation 2 serves in place of generation 1");
    close(open_again(daemon, -1));
    daemon_stop(daemon, SIGQUIT);
    ck_assert(!daemon_has(daemon, "socket"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_stopped_worker_keeps_nobody_waiting, 0, MODES);
    tcase_add_test(tcase, a_forged_owner_harms_nobody);
    tcase_add_loop_test(tcase, no_forger_is_fast_enough, 0, 4);
    tcase_add_loop_test(tcase, a_listener_that_was_shut_down_listens_again, 0, WAYS);
    tcase_add_loop_test(tcase, a_listener_of_two_masters, 0, 2);
    tcase_add_loop_test(tcase, a_listener_of_two_generations, 0, 2);
}

TEST_MAIN("accept_heals", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Watching workers learn changes of a map, whoever makes the change: a worker of the generation,
 * which rings, a worker of another generation, or the replacement of a killed worker. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static pid_t holder(struct daemon *daemon, int client)
{
    return proc_holder(daemon->pid, proc_connection(client));
}

/* Opens a client of any worker except `without`; 0: of any. */
static int open_beside(struct daemon *daemon, pid_t without)
{
    for (int tries = 0; tries < 1000; tries++) {
        int client = client_open(daemon->ports[0]);
        pid_t pid = 0;

        WAIT_FOR((pid = holder(daemon, client)) != 0);
        if (pid != without)
            return client;
        close(client);
    }
    ck_abort_msg("no other worker takes a client");
}

static void change(int client, const char *what)
{
    client_send(client, what);
    client_expect(client, "done\n");
}

START_TEST(changes_of_all_workers_are_told)
{
    struct daemon *daemon = daemon_start_new(1,
        "load_module " MODULES_PATH "/watcher.so; worker_processes 2; events { } stream {"
        " first_byte_timeout off; server { listen 127.0.0.1:$0 reuseport; watcher; } }");
    int watcher = open_beside(daemon, 0), other;
    pid_t own = holder(daemon, watcher), beside;

    daemon_expects(daemon, "exited on signal 9");
    client_send(watcher, "watch\n");
    client_expect(watcher, "watching\n");
    other = open_beside(daemon, own);
    change(other, "set a\n");
    client_expect(watcher, "+a\n");
    change(other, "delete a\n");
    client_expect(watcher, "-a\n");
    beside = holder(daemon, other);
    ck_assert_int_eq(kill(beside, SIGKILL), 0);
    close(other);
    WAIT_FOR(kill(beside, 0) == -1);

    other = open_beside(daemon, own);
    change(other, "set b\n");
    client_expect(watcher, "+b\n");
    close(other);
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "generation 2 serves");
    other = open_beside(daemon, own);
    change(other, "set c\n");
    client_expect(watcher, "+c\n"); /* from another generation */
    close(other);
    close(watcher);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, changes_of_all_workers_are_told);
}

TEST_MAIN("map_watch", add_tests)

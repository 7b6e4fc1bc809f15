/* SPDX-License-Identifier: BSD-2-Clause */
/* Several workers on a port: every way of sharing, and the behaviour without room. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/load_clients.h"
#include "daemon/proc.h"
#include "event/mechanism.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 40
#define HERD 8

/* Ways to share a port among four workers. */
static const struct {
    const char *events, *parameter;
} ways[] = {
    { "", "" },
    { "multi_accept on;", "" },
    { "accept_mutex off;", "" },
    { "accept_mutex off; multi_accept on;", "" },
    { "accept_mutex off;", "reuseport" },
    { "multi_accept on;", "reuseport" },
    { "use poll;", "" },
    { "use poll; accept_mutex off;", "" },
    { "use poll;", "reuseport" },
    { "use select; multi_accept on;", "" },
    { "use select; accept_mutex off; multi_accept on;", "" },
    { "use select;", "reuseport" },
};

START_TEST(none_is_lost)
{
    struct daemon *daemon = daemon_create(2);
    struct load_clients *load = malloc(sizeof(*load));
    struct client_status s;

    daemon_configure(daemon,
        "worker_processes 4; events { worker_connections 64; accept_mutex_delay 20ms; %s }"
        "stream { server { listen 127.0.0.1:$0 %s; echo; }"
        " server { listen 127.0.0.1:$1; stub_status; } }",
        ways[_i].events, ways[_i].parameter);
    daemon_start(daemon);
    load_clients_start(load, daemon->ports[0]);
    load_clients_wait(load, 300);
    load_clients_stop_unharmed(load);
    WAIT_FOR(client_status(daemon->ports[1]).active == 1);
    s = client_status(daemon->ports[1]);
    ck_assert_uint_eq(s.accepts, s.handled);
    ck_assert_uint_ge(s.accepts, load->connected);
    free(load);
    daemon_finish(daemon);
}
END_TEST

/* Configurations without room for CLIENTS, and the warnings. */
static const struct {
    const char *main, *events, *line;
} shortages[] = {
    { "worker_rlimit_nofile 32;", "", "[crit] " },
    { "", "worker_connections 20;", "[alert] " },
    { "", "worker_connections 20; multi_accept on;", "[alert] " },
    { "", "worker_connections 20; use poll;", "[alert] " },
    { "", "worker_connections 20; use select;", "[alert] " },
    { "master_process off;", "worker_connections 20;", "[alert] " },
    { "master_process off; worker_rlimit_nofile 32;", "", "[crit] " },
    { "worker_rlimit_nofile 32;", "use select; multi_accept on;", "[crit] " },
};

static unsigned count_answered(const int *clients)
{
    unsigned n = 0;

    for (int i = 0; i < CLIENTS; i++)
        n += clients[i] != -1 && !client_is_quiet(clients[i]);
    return n;
}

/* A client without room waits, and is served after a client's end; the log reports the wait
 * once. */
START_TEST(no_room)
{
    struct daemon *daemon = daemon_create(1);
    int clients[CLIENTS];
    unsigned served, left = 0;

    daemon_configure(daemon,
        "%s events { accept_mutex_delay 20ms; %s } stream { server { listen 127.0.0.1:$0; echo; } "
        "}",
        shortages[_i].main, shortages[_i].events);
    daemon_expects(daemon, "accepting is suspended");
    daemon_start(daemon);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_open(daemon->ports[0]);
        client_send(clients[i], "x");
    }
    daemon_wait_log(daemon, shortages[_i].line);
    daemon_wait_log(daemon, "accepting is suspended");
    WAIT_FOR(count_answered(clients) >= 20);
    served = count_answered(clients);
    ck_assert_uint_lt(served, CLIENTS);

    for (int i = 0; i < CLIENTS; i++) { /* a served client makes room for another */
        if (clients[i] == -1 || client_is_quiet(clients[i]))
            continue;
        close(clients[i]);
        clients[i] = -1;
        left++;
    }
    WAIT_FOR(count_answered(clients) == CLIENTS - left);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i] != -1)
            close(clients[i]);
    ck_assert_uint_eq(daemon_count_log(daemon, "accepting is suspended"), 1);
    daemon_finish(daemon);
}
END_TEST

/* A suspended worker tries again after the delay: where the delay is long, its neighbours must not
 * depend on the worker. With the mutex they do. */
static const char *const shared[] = { "accept_mutex_delay 20ms;",
    "accept_mutex off; accept_mutex_delay 60s;",
    "accept_mutex off; accept_mutex_delay 60s; multi_accept on;",
    "use poll; accept_mutex off; accept_mutex_delay 60s;", "use select; accept_mutex_delay 20ms;" };

/* A full worker leaves new clients to its neighbours, until all are full to the last place. */
START_TEST(others_take_over)
{
    struct daemon *daemon = daemon_create(1);
    int clients[8];

    daemon_configure(daemon,
        "worker_processes 4; events { worker_connections 2; %s }"
        "stream { server { listen 127.0.0.1:$0; echo; } }",
        shared[_i]);
    daemon_expects(daemon, "2 worker_connections are not enough");
    daemon_start(daemon);
    for (int i = 0; i < 8; i++) { /* no later client helps */
        clients[i] = client_open(daemon->ports[0]);
        client_echo(clients[i], "found a place");
    }
    for (int i = 0; i < 8; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

static unsigned long processor_ticks(pid_t pid)
{
    const char *fields = strrchr(proc_text(pid, "stat"), ')');
    unsigned long user, system;

    ck_assert_ptr_nonnull(fields);
    ck_assert_int_eq(
        sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return user + system;
}

/* A suspension costs no time of the processor. */
START_TEST(suspension_does_not_spin)
{
    struct daemon *daemon = daemon_create(1);
    int clients[CLIENTS];
    pid_t worker;
    unsigned long before;
    int64_t until;

    daemon_configure(daemon, "worker_rlimit_nofile 32; events { accept_mutex_delay 20ms; }"
                             "stream { server { listen 127.0.0.1:$0; echo; } }");
    daemon_expects(daemon, "accepting is suspended");
    daemon_start(daemon);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_open(daemon->ports[0]);
    daemon_wait_log(daemon, "accepting is suspended");
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    before = processor_ticks(worker);
    for (until = now_ms() + 500; now_ms() < until;)
        pause_briefly();
    ck_assert_uint_le(processor_ticks(worker) - before, 15); /* the last of 50 */
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

/* How often the workers were woken from sleep. */
static int64_t count_wakeups(const struct daemon *daemon)
{
    pid_t workers[HERD];
    int64_t n = 0;

    ck_assert_uint_eq(proc_children(daemon->pid, workers, HERD), HERD);
    for (int i = 0; i < HERD; i++) {
        const char *line = strstr(proc_text(workers[i], "status"), "\nvoluntary_ctxt_switches:");

        ck_assert_ptr_nonnull(line);
        n += atoll(strchr(line, ':') + 1);
    }
    return n;
}

/* Whether nobody has woken for a while. */
static bool all_sleep(const struct daemon *daemon)
{
    int64_t before = count_wakeups(daemon);

    for (int i = 0; i < 20; i++)
        pause_briefly();
    return count_wakeups(daemon) == before;
}

/* Ways of accepting under epoll, with a single worker woken per client. */
static const char *const calm[] = { "", "accept_share off;", "accept_mutex off;",
    "accept_mutex off; multi_accept on;" };

/* In a quiet daemon a client wakes one worker; a few more may come, since the kernel schedules. */
START_TEST(a_client_wakes_one_worker)
{
    struct daemon *daemon;
    int64_t before;

    if (mechanism_find("epoll") == NULL)
        return;
    daemon = daemon_start_new(1,
        "worker_processes 8; events { use epoll; %s }"
        "stream { server { listen 127.0.0.1:$0; return wake; } }",
        calm[_i]);
    WAIT_FOR(all_sleep(daemon));
    before = count_wakeups(daemon);
    for (int i = 0; i < CLIENTS; i++) {
        int client = client_open(daemon->ports[0]);

        client_expect(client, "wake");
        client_expect_end(client);
        close(client);
    }
    WAIT_FOR(all_sleep(daemon));
    ck_assert_int_le(count_wakeups(daemon) - before, CLIENTS + CLIENTS / 2);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, none_is_lost, 0, sizeof(ways) / sizeof(ways[0]));
    tcase_add_loop_test(tcase, no_room, 0, sizeof(shortages) / sizeof(shortages[0]));
    tcase_add_loop_test(tcase, others_take_over, 0, sizeof(shared) / sizeof(shared[0]));
    tcase_add_test(tcase, suspension_does_not_spin);
    tcase_add_loop_test(tcase, a_client_wakes_one_worker, 0, sizeof(calm) / sizeof(calm[0]));
}

TEST_MAIN("accept", add_tests)

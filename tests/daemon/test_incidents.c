/* SPDX-License-Identifier: BSD-2-Clause */
/* Incidents, and the commands that name the cause, in two steps at most: see INCIDENTS of
 * forkbeard(8). Drills of other tests:
 *
 * worker stuck or stopped      test_check: a_worker_that_does_not_work_is_named
 * workers full                 test_check: full_workers_are_named
 * failed reload                test_check: a_failed_reload_is_a_warning
 * daemon dead                  test_check: a_daemon_that_is_not_there_is_critical
 * dead servers of names        test_kept_names: dead_servers_of_names_close_no_client
 * lost lines of the error log  test_logs: slow_receiver
 * end of a certificate         test_certificates: the_end_of_a_certificate_is_told
 * refused certificate          test_certificates: a_bad_pair_is_refused_with_a_line
 * crashes after a reload       control/test_problems: ended_workers_are_told_of
 * group without servers        control/test_problems: a_group_without_servers_is_told_of */
#include "daemon/backends.h"
#include "daemon/client.h"
#include "daemon/proc.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RUN(daemon, ...) daemon_run((daemon), __VA_ARGS__, "-c", "forkbeard.conf", NULL)
#define FLOOD 8      /* clients of one address */
#define LEAKED 12    /* sessions, more than there are clients */
#define SLOW_MS 1000 /* counted as a slow first byte */

/* Whether the line of the output has both texts. */
static bool line_has(const char *line, const char *one, const char *other)
{
    const char *a = strstr(line, one), *b = strstr(line, other), *end = strchr(line, '\n');

    return a != NULL && b != NULL && end != NULL && a < end && b < end;
}

/* Returns the line behind the headings of `sessions`. */
static const char *first_row(const struct daemon *daemon)
{
    const char *end = strchr(daemon->out, '\n');

    ck_assert_msg(end != NULL && end[1] != '\0', "%s", daemon->out);
    return end + 1;
}

static void expect_out(const struct daemon *daemon, const char *text)
{
    ck_assert_msg(strstr(daemon->out, text) != NULL, "%s is not in %s", text, daemon->out);
}

/* Returns the right-aligned number below the heading, in the first row with the text. */
static long number_below(const struct daemon *daemon, const char *heading, const char *row)
{
    const char *head = strstr(daemon->out, heading), *line = head, *cell;
    size_t end = strlen(heading);

    ck_assert_msg(head != NULL, "%s is not in %s", heading, daemon->out);
    for (; line > daemon->out && line[-1] != '\n'; line--)
        end++;
    line = strstr(head, row);
    ck_assert_msg(line != NULL, "%s is not in %s", row, daemon->out);
    while (line[-1] != '\n')
        line--;
    ck_assert_uint_ge(strcspn(line, "\n"), end);
    for (cell = line + end; cell > line && cell[-1] != ' ';)
        cell--;
    return strtol(cell, NULL, 10);
}

/* Opens a client with the address 127.0.0.2. */
static int open_elsewhere(in_port_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void pour(int client)
{
    char text[4001];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < 20; i++)
        client_echo(client, text);
}

/* A flood from one address, and a client that moves most bytes. */
static void name_clients(struct daemon *daemon, int pouring)
{
    struct sockaddr_in own;
    socklen_t length = sizeof(own);
    char text[32];

    ck_assert_int_eq(RUN(daemon, "sessions", "--by", "client"), 0);
    ck_assert_msg(line_has(first_row(daemon), "        8 ", " 127.0.0.2\n"), "%s", daemon->out);
    pour(pouring);
    ck_assert_int_eq(getsockname(pouring, (struct sockaddr *)&own, &length), 0);
    snprintf(text, sizeof(text), "127.0.0.1:%u ", ntohs(own.sin_port));
    ck_assert_int_eq(RUN(daemon, "sessions", "--sort", "rate"), 0);
    ck_assert_msg(strncmp(first_row(daemon), text, strlen(text)) == 0, "%s", daemon->out);
}

/* A module whose sessions stay when their clients have gone. */
static void name_leak(struct daemon *daemon)
{
    for (int i = 0; i < LEAKED; i++) {
        int client = client_open(daemon->ports[1]);

        client_expect(client, "stopped\n");
        close(client);
    }
    ck_assert_int_eq(RUN(daemon, "status"), 0);
    ck_assert_int_eq(number_below(daemon, "ACTIVE", " halts "), LEAKED);
    ck_assert_int_eq(RUN(daemon, "sessions", "--by", "protocol"), 0);
    ck_assert_msg(line_has(first_row(daemon), "       12 ", " halts\n"), "%s", daemon->out);
}

START_TEST(sessions_name_clients_and_a_module)
{
    struct daemon *daemon = daemon_start_new(2,
        "worker_processes 2; load_module " MODULES_PATH "/halts.so; events {} stream {"
        " server { listen 127.0.0.1:$0; echo; } server { listen 127.0.0.1:$1; halts on; } }");
    int pouring = client_open(daemon->ports[0]), other = client_open(daemon->ports[0]);
    int flood[FLOOD];

    for (int i = 0; i < FLOOD; i++)
        client_echo(flood[i] = open_elsewhere(daemon->ports[0]), "x");
    client_echo(other, "x");
    client_echo(pouring, "x");
    name_clients(daemon, pouring);
    name_leak(daemon);
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
    close(pouring);
    close(other);
    daemon_finish(daemon);
}
END_TEST

/* Begins two sessions with each server, of which the second is silent. */
static void begin_with_silence(struct daemon *daemon, int clients[4], const char *silent)
{
    for (int i = 0; i < 4; i++)
        clients[i] = backend_begin(daemon);
    WAIT_FOR(
        RUN(daemon, "sessions", "waits_for=the server's first byte", "--by", "upstream") == 0 &&
        line_has(daemon->out + strcspn(daemon->out, "\n") + 1, "        2 ", silent));
    ck_assert_ptr_null(strstr(daemon->out, " 127.0.0.1:"));
}

/* Ends the sessions; returns how many get the answer. */
static unsigned end_answered(int clients[4], char answer)
{
    unsigned n = 0;

    for (int i = 0; i < 4; i++) {
        n += backend_answer(clients[i]) == answer;
        close(clients[i]);
    }
    return n;
}

/* A server is silent, then slow; resets sessions; and refuses to be connected. */
START_TEST(upstream_names_a_server)
{
    struct daemon *daemon = daemon_start_new(2,
        "events {} stream { upstream u { zone u 64k; server 127.0.0.1:$1; server 127.0.0.2:$1; }"
        " server { listen 127.0.0.1:$0; proxy_pass u; } }");
    struct backend backends[2];
    int clients[4];
    char server[32], problem[96];
    int64_t since;

    daemon_expects(daemon, "while proxying and reading from upstream");
    daemon_expects(daemon, "while connecting to upstream");
    backends_start(backends, 2, daemon->ports[1]);
    snprintf(server, sizeof(server), " 127.0.0.2:%u", daemon->ports[1]);
    proc_freeze(backends[1].pid);
    begin_with_silence(daemon, clients, server);
    since = now_ms();
    WAIT_FOR(now_ms() - since > SLOW_MS);
    backend_thaw(&backends[1]);
    ck_assert_uint_eq(end_answered(clients, '2'), 2);
    ck_assert_int_eq(RUN(daemon, "upstream", "u"), 0);
    expect_out(daemon, "refusals: 0, slow first bytes: 2\n");
    ck_assert(strstr(daemon->out, "slow first bytes") > strstr(daemon->out, server));
    ck_assert_int_eq(RUN(daemon, "status"), 0);
    expect_out(daemon, "  troubles: 2 slow\n");

    proc_freeze(backends[1].pid);
    begin_with_silence(daemon, clients, server);
    backend_kill(&backends[1]);
    ck_assert_uint_eq(end_answered(clients, '-'), 2);
    ck_assert_int_eq(RUN(daemon, "upstream", "u"), 0);
    expect_out(daemon, "    resets: 2, ");
    ck_assert_int_eq(RUN(daemon, "status"), 0);
    expect_out(daemon, "2 upstream_reset");

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(backend_ask(daemon), '1');
    ck_assert_int_eq(RUN(daemon, "status", "--check"), 1);
    snprintf(problem, sizeof(problem), "\nwarning: server%s of upstream \"u\" is failed: ", server);
    expect_out(daemon, problem);
    backends_kill(backends, 1);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_full_disk_under_an_access_log_is_named)
{
    struct daemon *daemon =
        daemon_start_new(1, "events {} stream { log_format own '$remote_addr'; access_log"
                            " /dev/full own; server { listen 127.0.0.1:$0; echo; } }");

    daemon_expects(daemon, "not accepted by \"/dev/full\"");
    client_run_session(daemon->ports[0]);
    WAIT_FOR(RUN(daemon, "status", "--check") == 1);
    expect_out(daemon, "\nwarning: log lines were lost, 1 since the start: look at disks");
    daemon_wait_log(daemon, "1 line was not accepted by \"/dev/full\" (28: ");
    daemon_finish(daemon);
}
END_TEST

/* Whether the worker has no descriptor for the next client. */
static bool is_suspended(struct daemon *daemon)
{
    return daemon_count_log(daemon, "accepting is suspended") > 0;
}

START_TEST(a_lack_of_descriptors_and_a_full_queue_are_named)
{
    struct daemon *daemon =
        daemon_start_new(1, "worker_rlimit_nofile 32; events { reclaim_idle off; }"
                            " stream { server { listen 127.0.0.1:$0 backlog=4; echo; } }");
    int clients[40], n = 0;

    daemon_expects(daemon, "accepting is suspended");
    while (!is_suspended(daemon)) {
        ck_assert_int_lt(n, 32);
        client_send(clients[n] = client_open(daemon->ports[0]), "x");
        WAIT_FOR(!client_is_quiet(clients[n]) || is_suspended(daemon));
        n++;
    }
    for (int i = 0; i < 3; i++)
        clients[n++] = client_open(daemon->ports[0]);
    WAIT_FOR(RUN(daemon, "status", "--check") == 2 &&
             strstr(daemon->out, " has no descriptor or no memory, and accepts no clients: raise "
                                 "worker_rlimit_nofile") != NULL);
    expect_out(daemon, " of 32 descriptors: raise worker_rlimit_nofile\n");
    expect_out(daemon, "\ncritical: 4 clients wait at 127.0.0.1:");
    while (n > 0)
        close(clients[--n]);
    WAIT_FOR(RUN(daemon, "status", "--check") == 0);
    daemon_finish(daemon);
}
END_TEST

/* Opens a session with the worker; clients are spread by the kernel. */
static int open_at(const struct daemon *daemon, pid_t worker)
{
    for (int64_t until = deadline_ms();;) {
        int client = client_open(daemon->ports[0]);

        ck_assert_int_lt(now_ms(), until);
        client_echo(client, "?");
        if (proc_server_of(daemon->pid, client) == worker)
            return client;
        close(client);
    }
}

/* One worker serves all clients, with growing memory. */
START_TEST(an_uneven_worker_is_named)
{
    struct daemon *daemon =
        daemon_start_new(1, "worker_processes 2; load_module " MODULES_PATH "/stuck.so; events {}"
                            " stream { server { listen 127.0.0.1:$0 reuseport; stuck; } }");
    char rows[2][16], filter[32];
    pid_t workers[2];
    int clients[4];

    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    for (int i = 0; i < 2; i++)
        snprintf(rows[i], sizeof(rows[i]), " %d ", (int)workers[i]);
    for (int i = 0; i < 4; i++)
        clients[i] = open_at(daemon, workers[0]);
    client_echo(clients[0], "g");
    WAIT_FOR(RUN(daemon, "status") == 0 && number_below(daemon, "CONNECTIONS", rows[1]) == 0);
    ck_assert_int_eq(number_below(daemon, "CONNECTIONS", rows[0]), 4);
    ck_assert_int_ge(
        number_below(daemon, "MEMORY", rows[0]), number_below(daemon, "MEMORY", rows[1]) + 24);
    snprintf(filter, sizeof(filter), "worker=%d", (int)workers[0]);
    ck_assert_int_eq(RUN(daemon, "sessions", filter, "--by", "protocol"), 0);
    ck_assert_msg(line_has(first_row(daemon), "        4 ", " stuck\n"), "%s", daemon->out);
    for (int i = 0; i < 4; i++)
        close(clients[i]);
    daemon_finish(daemon);
}
END_TEST

/* A worker is killed in the callback of a module. */
START_TEST(a_death_is_named)
{
    struct daemon *daemon =
        daemon_start_new(1, "load_module " MODULES_PATH "/stuck.so; events {}"
                            " stream { server { listen 127.0.0.1:$0; stuck; } }");
    int client = client_open(daemon->ports[0]);
    pid_t worker;

    daemon_expects(daemon, "exited on signal 9");
    client_echo(client, "?");
    ck_assert_uint_eq(proc_children(daemon->pid, &worker, 1), 1);
    client_send(client, "s");
    WAIT_FOR(proc_state(worker) == 'T');
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    client_expect_gone(client);
    daemon_wait_log(daemon, "exited on signal 9");
    ck_assert_int_eq(RUN(daemon, "status"), 0);
    expect_out(daemon, "deaths of workers: 1 signal");
    ck_assert_int_eq(RUN(daemon, "events"), 0);
    expect_out(daemon, "  worker_died           worker process ");
    expect_out(daemon, " exited on signal 9 in callback \"data\" of protocol \"stuck\"");
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, sessions_name_clients_and_a_module);
    tcase_add_test(tcase, upstream_names_a_server);
    tcase_add_test(tcase, a_full_disk_under_an_access_log_is_named);
    tcase_add_test(tcase, a_lack_of_descriptors_and_a_full_queue_are_named);
    tcase_add_test(tcase, an_uneven_worker_is_named);
    tcase_add_test(tcase, a_death_is_named);
}

TEST_MAIN("incidents", add_tests)

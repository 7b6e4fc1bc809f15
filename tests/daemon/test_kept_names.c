/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers with names, after the silence of all servers of names: the old addresses serve every
 * client, through deaths of workers and of the asking process, and changes of the configuration and
 * of the binary. The test is the server of names. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/name_server.h"
#include "daemon/proc.h"
#include "daemon/upgrade.h"
#include "support/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLIENTS 30
#define FAILS "could not be resolved: "

/* Kinds of servers with names: an address record, or a service, of a group or a directive. */
static const struct {
    const char *group, *pass;
    bool is_asked_again;
} kinds[] = {
    { "upstream named { server a.test:$1 resolve; }", "named", true },
    { "upstream named { zone named 64k; server a.test:$1 resolve; }", "named", true },
    { "upstream named { server a.test service=echo resolve; }", "named", true },
    { "", "a.test:$1", false },
};

static struct daemon *start(const struct name_server *server, int kind)
{
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon,
        "worker_processes 2; events { accept_mutex off; } stream { resolver 127.0.0.1:%d ipv6=off "
        "valid=1s; "
        "resolver_timeout 1s; %s server { listen 127.0.0.1:$0; proxy_pass %s; } "
        "server { listen 127.0.0.1:$1; echo; } }",
        server->port, kinds[kind].group, kinds[kind].pass);
    daemon_start(daemon);
    return daemon;
}

/* Answers the pending question, if any. */
static void answer(const struct name_server *server, in_port_t port)
{
    uint8_t service[] = { 0, 1, 0, 1, (uint8_t)(port >> 8), (uint8_t)port, 1, 'a', 4, 't', 'e', 's',
        't', 0 };
    struct name_reply reply;

    if (name_server_is_quiet(server))
        return;
    name_server_take(server, &reply);
    if (name_reply_type(&reply) == NAME_SRV)
        name_reply_add(&reply, NAME_ASKED, NAME_SRV, 1, service, sizeof(service));
    else
        name_reply_add(&reply, NAME_ASKED, NAME_A, 1, ((const uint8_t[]) { 127, 0, 0, 1 }), 4);
    name_server_send(server, &reply, 0);
}

/* Replies NXDOMAIN, so that the log shows the later appearance of the name. */
static void deny(const struct name_server *server)
{
    struct name_reply reply;

    if (name_server_is_quiet(server))
        return;
    name_server_take(server, &reply);
    name_server_send(server, &reply, 3);
}

static bool has_answered(struct daemon *daemon, const struct name_server *server)
{
    if (daemon_count_log(daemon, FAILS) > 0)
        answer(server, daemon->ports[1]);
    else
        deny(server);
    return daemon_count_log(daemon, "has been resolved, addresses: 1") > 0;
}

/* Serves clients in sequence, by any worker. */
static void expect_served(struct daemon *daemon)
{
    for (int i = 0; i < CLIENTS; i++) {
        int client = client_open(daemon->ports[0]);

        client_echo(client, "served");
        close(client);
    }
}

/* The master's children of this title. */
static unsigned find_titled(pid_t master, const char *title, pid_t list[8])
{
    unsigned n = proc_children(master, list, 8), found = 0;

    for (unsigned i = 0; i < n; i++)
        if (strstr(proc_text(list[i], "cmdline"), title) != NULL)
            list[found++] = list[i];
    return found;
}

/* Kills the n processes with the title, and waits for their replacements. */
static void kill_all(struct daemon *daemon, const char *title, unsigned n)
{
    pid_t old[8], new[8];

    WAIT_FOR(find_titled(daemon->pid, title, old) == n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(kill(old[i], SIGKILL), 0);
    for (unsigned i = 0; i < n; i++)
        WAIT_FOR(kill(old[i], 0) == -1);
    WAIT_FOR(find_titled(daemon->pid, title, new) == n);
}

/* The operator sees the age of what was kept, and why there is nothing newer. */
static void expect_shown(struct daemon *daemon)
{
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "upstream", "named", NULL), 0);
    ck_assert_msg(strstr(daemon->out, ": 1 address, ") != NULL, "%s", daemon->out);
    ck_assert_msg(
        strstr(daemon->out, "a.test: no server has answered in time") != NULL, "%s", daemon->out);
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "status", NULL), 0);
    ck_assert_msg(strstr(daemon->out, "  resolving  ") != NULL, "%s", daemon->out);
    ck_assert_msg(strstr(daemon->out, " of upstream \"named\" keeps its addresses, without a good "
                                      "answer for ") != NULL,
        "%s", daemon->out);
}

/* The asking process has no listener, and no bell. */
static void expect_few_descriptors(struct daemon *daemon)
{
    pid_t resolver[8], worker[8];

    ck_assert_uint_eq(find_titled(daemon->pid, "resolver process", resolver), 1);
    ck_assert_uint_eq(find_titled(daemon->pid, "worker process", worker), 2);
    ck_assert_uint_lt(proc_descriptors(resolver[0]) + 2, proc_descriptors(worker[0]));
}

/* Reloads; the reply names the kept addresses. */
static void reload(struct daemon *daemon)
{
    int code = daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL);

    ck_assert_msg(code == 0, "%s", daemon->err);
    ck_assert_msg(strstr(daemon->err, "; 1 address of before is kept") != NULL, "%s", daemon->err);
}

START_TEST(dead_servers_of_names_close_no_client)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, _i);
    pid_t new;

    daemon_expects(daemon, FAILS);
    daemon_expects(daemon, "exited on signal 9");
    WAIT_FOR(has_answered(daemon, &server));
    expect_served(daemon);
    expect_few_descriptors(daemon);
    if (kinds[_i].is_asked_again) { /* the server says nothing from now on */
        daemon_wait_log(daemon, "keeps its addresses");
        expect_shown(daemon);
    }
    expect_served(daemon);
    kill_all(daemon, "worker process", 2);
    expect_served(daemon);
    kill_all(daemon, "resolver process", 1);
    kill_all(daemon, "worker process", 2);
    expect_served(daemon);
    reload(daemon);
    expect_served(daemon);
    kill_all(daemon, "worker process", 2);
    expect_served(daemon);
    new = upgrade_start(daemon);
    expect_served(daemon);
    upgrade_roll_back(daemon, new);
    expect_served(daemon);
    upgrade_complete(daemon, upgrade_start(daemon));
    expect_served(daemon);
    reload(daemon);
    expect_served(daemon);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

/* How often the process has waited. */
static unsigned long waits_of(pid_t pid)
{
    static const char name[] = "voluntary_ctxt_switches:";
    const char *line = strstr(proc_text(pid, "status"), name);

    ck_assert_ptr_nonnull(line);
    return strtoul(line + sizeof(name) - 1, NULL, 10);
}

/* A name resolved each second, with the same addresses as before, is no news. Without the accept
 * mutex nothing else wakes a worker without clients. */
START_TEST(an_answer_that_is_no_news_wakes_no_worker)
{
    struct name_server server = name_server_start();
    struct daemon *daemon = start(&server, 0);
    unsigned long before[2] = { 0, 0 };
    pid_t workers[8];

    daemon_expects(daemon, FAILS);
    WAIT_FOR(has_answered(daemon, &server));
    ck_assert_uint_eq(find_titled(daemon->pid, "worker process", workers), 2);
    for (int i = 0; i < 5; i++) { /* the first answers may still be news */
        WAIT_FOR(!name_server_is_quiet(&server));
        for (int j = 0; i == 1 && j < 2; j++)
            before[j] = waits_of(workers[j]);
        answer(&server, daemon->ports[1]);
    }
    for (int j = 0; j < 2; j++)
        ck_assert_uint_eq(waits_of(workers[j]), before[j]);
    name_server_stop(&server);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, an_answer_that_is_no_news_wakes_no_worker);
    tcase_add_loop_test(
        tcase, dead_servers_of_names_close_no_client, 0, sizeof(kinds) / sizeof(*kinds));
}

TEST_MAIN("kept names", add_tests)

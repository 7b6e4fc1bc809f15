/* SPDX-License-Identifier: BSD-2-Clause */
/* `forkbeard sessions`: rows of two workers through a reload, and a stopped worker. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char conf[] = "worker_processes 2; events { accept_share on; } stream {\n"
                           "  server { listen 127.0.0.1:$0; echo; }\n"
                           "  server { listen 127.0.0.1:$1; proxy_pass 127.0.0.1:$0; }\n"
                           "  server { listen 127.0.0.1:$2 proxy_protocol; echo; } }";

static int list(struct daemon *daemon, const char *option, const char *argument)
{
    return daemon_run(daemon, "sessions", "-c", "forkbeard.conf", option, argument, NULL);
}

static unsigned count_shown(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

START_TEST(sessions_are_listed_and_counted)
{
    struct daemon *daemon = daemon_start_new(3, conf);
    int echoing = client_open(daemon->ports[0]), proxied = client_open(daemon->ports[1]);
    int silent = client_open(daemon->ports[2]);

    client_echo(echoing, "1234567\n");
    client_echo(proxied, "123\n");
    ck_assert(control_is_ok(control_ask(daemon, "reload"))); /* old workers list theirs, too */
    WAIT_FOR(list(daemon, NULL, NULL) == 0 && count_shown(daemon->out, "\n") == 5);
    ck_assert_uint_eq(count_shown(daemon->out, " echo "), 3); /* of the proxy's, too */
    ck_assert_uint_eq(count_shown(daemon->out, " proxy "), 1);
    ck_assert_ptr_nonnull(strstr(daemon->out, "  PROXY header  the client"));
    ck_assert_ptr_nonnull(strstr(daemon->out, "  active        the client"));
    ck_assert_ptr_nonnull(strstr(daemon->out, "  client or server\n"));
    ck_assert_int_eq(list(daemon, "--json", "received=5"), 0);
    ck_assert_uint_eq(count_shown(daemon->out, "\n"), 1);
    ck_assert_ptr_nonnull(strstr(daemon->out, "\"received\":8,\"sent\":8,"));
    ck_assert_int_eq(list(daemon, "--by", "client"), 0);
    ck_assert_ptr_nonnull(strstr(daemon->out, "        4 "));
    ck_assert_str_eq(daemon->err, "");
    close(echoing);
    close(proxied);
    close(silent);
    daemon_finish(daemon);
}
END_TEST

START_TEST(a_silent_worker_is_named)
{
    struct daemon *daemon = daemon_start_new(3, conf);
    int client = client_open(daemon->ports[0]);
    pid_t workers[2];
    char missing[128];

    client_echo(client, "1234567\n");
    ck_assert_uint_eq(proc_children(daemon->pid, workers, 2), 2);
    ck_assert_int_eq(kill(workers[0], SIGSTOP), 0);
    ck_assert_int_eq(list(daemon, NULL, NULL), 3);
    snprintf(missing, sizeof(missing),
        "sessions of worker process %d are missing: silent for a second", (int)workers[0]);
    ck_assert_ptr_nonnull(strstr(daemon->err, missing));
    ck_assert_int_eq(kill(workers[0], SIGCONT), 0);
    ck_assert_int_eq(list(daemon, NULL, NULL), 0);
    ck_assert_uint_eq(count_shown(daemon->out, " echo "), 1);
    close(client);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_test(tcase, sessions_are_listed_and_counted);
    tcase_add_test(tcase, a_silent_worker_is_named);
}

TEST_MAIN("sessions", add_tests)

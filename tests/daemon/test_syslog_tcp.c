/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs by TCP to a collector, which starts late, restarts, and stays away: messages are whole, none
 * is lost unseen, and nobody waits. */
#include "base/compiler.h"
#include "daemon/client.h"
#include "daemon/log_collector.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SERVER "server { listen 127.0.0.1:$0; echo; }"

static const char *const kinds[] = { "worker_processes 2; sandbox strict; ",
    "master_process off; " };

static struct collector collector;

static void begin_collector(void)
{
    collector = (struct collector) { .listener = -1 };
    collector_start(&collector);
}

static void run_sessions(const struct daemon *daemon, unsigned n)
{
    while (n-- > 0)
        client_run_session(daemon->ports[0]);
}

/* An access log of short lines by TCP. */
static struct daemon *start(int kind)
{
    return daemon_start_new(1,
        "%s events {} stream { log_format main '$remote_addr $status'; "
        "access_log syslog:server=tcp://127.0.0.1:%u,tag=web,nohostname main; " SERVER " }\n",
        kinds[kind], (unsigned)collector.port);
}

START_TEST(lines_have_a_head)
{
    struct daemon *daemon;
    const char *line;
    unsigned priority, micros;
    char date[32], zone[8];
    int pid;

    begin_collector();
    daemon = start(_i);
    run_sessions(daemon, 5);
    WAIT_FOR(collector_count(&collector, " access - 127.0.0.1 200\n") == 5);
    line = collector.text;
    ck_assert_int_eq(sscanf(line, "<%u>1 %31[0-9T:-].%6u%7[0-9:+-] - web %d access - 127.0.0.1 200",
                         &priority, date, &micros, zone, &pid),
        5);
    ck_assert_uint_eq(priority, 23 * 8 + 6);
    ck_assert_uint_eq(strlen(date), strlen("2026-11-21T09:30:00"));
    ck_assert_uint_eq(strlen(zone), strlen("+01:00"));
    ck_assert_int_eq(pid == daemon->pid, _i == 1);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(collector_count(&collector, "access"), 5);
    ck_assert_uint_eq(collector.connection_n + collector.torn_n, 0);
    collector_done(&collector);
    daemon_finish(daemon);
}
END_TEST

/* A collector that has read everything goes, and comes back: no line is lost or torn. */
START_TEST(the_collector_restarts)
{
    struct daemon *daemon;

    begin_collector();
    daemon = start(_i);
    daemon_expects(daemon, "the connection to syslog server tcp://127.0.0.1:");
    for (unsigned i = 1; i <= 3; i++) {
        run_sessions(daemon, 20);
        WAIT_FOR(collector_count(&collector, "access") == i * 40 - 20);
        collector_stop(&collector);
        run_sessions(daemon, 20);
        daemon_wait_log(daemon, " is down, lines for it wait");
        collector_start(&collector);
        WAIT_FOR(collector_count(&collector, "access") == i * 40);
    }
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(collector_count(&collector, "access"), 120);
    ck_assert_uint_eq(collector.torn_n, 0);
    ck_assert_uint_eq(daemon_count_log(daemon, "not accepted"), 0);
    collector_done(&collector);
    daemon_finish(daemon);
}
END_TEST

/* Adds the numbers of lost lines that the log has. */
static unsigned count_lost(struct daemon *daemon)
{
    static const char lost[] = " not accepted by syslog server tcp://127.0.0.1:";
    const char *text = daemon_text(daemon, daemon->log);
    unsigned n = 0;

    while ((text = strstr(text, lost)) != NULL) {
        const char *number = text;

        while (number[-1] != ':') /* "#0: 5 lines were" */
            number--;
        n += (unsigned)strtoul(number, NULL, 10);
        text += strlen(lost);
    }
    return n;
}

/* Lines of 100 kB fill the memory for lines that wait. */
START_TEST(lost_lines_are_counted)
{
    struct daemon *daemon;
    char kilobyte[1001];
    unsigned n;

    begin_collector();
    collector_stop(&collector);
    memset(kilobyte, 'x', sizeof(kilobyte) - 1);
    kilobyte[sizeof(kilobyte) - 1] = '\0';
    daemon = daemon_start_new(1,
        "%s events {} stream { log_format main 'LINE $t$t$t$t$t$t$t$t$t$t'; "
        "access_log syslog:server=tcp://127.0.0.1:%u main; server { listen 127.0.0.1:$0; echo; "
        "set $k %s; set $t $k$k$k$k$k$k$k$k$k$k; } }\n",
        kinds[_i], (unsigned)collector.port, kilobyte);
    daemon_expects(daemon, "syslog server tcp://127.0.0.1:");
    run_sessions(daemon, 60);
    daemon_wait_log(daemon, " not accepted by syslog server tcp://127.0.0.1:");
    collector_start(&collector);
    WAIT_FOR(collector_count(&collector, "LINE") >= 9);
    run_sessions(daemon, 10);
    daemon_stop(daemon, SIGQUIT);
    WAIT_FOR((n = collector_count(&collector, "LINE"), collector.connection_n == 0));
    ck_assert_uint_gt(count_lost(daemon), 0);
    ck_assert_uint_eq(n + count_lost(daemon), 70);
    ck_assert_uint_eq(collector.torn_n, 0);
    collector_done(&collector);
    daemon_finish(daemon);
}
END_TEST

/* The master and the process that checks a configuration have connections, too; a reload closes
 * those of a log that is no more. */
START_TEST(error_logs)
{
    struct daemon *daemon = daemon_create(1);

    begin_collector();
    daemon_configure(daemon,
        "error_log syslog:server=tcp://127.0.0.1:%u info; worker_processes 2; "
        "events {} stream { " SERVER " }\n",
        (unsigned)collector.port);
    daemon_start(daemon);
    run_sessions(daemon, 3);
    WAIT_FOR(collector_count(&collector, "generation 1 serves") == 1);
    WAIT_FOR(collector_count(&collector, " error - ") >= 7);
    WAIT_FOR(collector_count(&collector, " connected to 127.0.0.1:") == 3);
    daemon_configure(daemon, "error_log syslog:server=tcp://127.0.0.1:%u info; evnets {}\n",
        (unsigned)collector.port);
    daemon_expects(daemon, "evnets");
    daemon_signal(daemon, SIGHUP);
    WAIT_FOR(collector_count(&collector, "unknown directive \"evnets\"") == 1);
    daemon_configure(daemon, "events {} stream { " SERVER " }\n");
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "generation 2 serves");
    WAIT_FOR(collector_count(&collector, "<") > 0 && collector.connection_n == 0);
    run_sessions(daemon, 3);
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(collector.torn_n, 0);
    collector_done(&collector);
    daemon_finish(daemon);
}
END_TEST

/* Whose port is closed makes nobody wait, not even at the start and the end. */
START_TEST(there_is_no_collector)
{
    struct daemon *daemon;

    begin_collector();
    collector_stop(&collector);
    daemon = start(_i);
    daemon_expects(daemon, "syslog server tcp://127.0.0.1:");
    run_sessions(daemon, 7);
    daemon_wait_log(daemon, "(111: Connection refused)");
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_eq(count_lost(daemon), 7);
    collector_done(&collector);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, lines_have_a_head, 0, countof(kinds));
    tcase_add_loop_test(tcase, the_collector_restarts, 0, countof(kinds));
    tcase_add_loop_test(tcase, lost_lines_are_counted, 0, countof(kinds));
    tcase_add_test(tcase, error_logs);
    tcase_add_loop_test(tcase, there_is_no_collector, 0, countof(kinds));
}

TEST_MAIN("syslog_tcp", add_tests)

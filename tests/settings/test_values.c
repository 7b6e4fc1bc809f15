/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of directives about unusable values, and the meaning of odd values. */
#include "settings/loading.h"
#include "settings/samples.h"
#include "support/test.h"

#include "base/cpu_mask.h"
#include "os/limits.h"
#include "os/process.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define TIME "expected a time such as 500ms, 30s or 1h 30m"
#define MECHANISM "expected an event mechanism of the build (see -V)"
#define TEN "/123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "/"
#define LEVEL "expected a level: debug, info, notice, warn, error, crit, alert or emerg"
#define RULE "expected an address, a CIDR block, \"unix:\" or \"all\""
#define CONTROL_MODE                                                                               \
    "expected 0600, or 0660 for a \"group\": rights for the owner, and none for others"
#define PARAMETERS "expected server=, facility=, tag=, severity=, format= or nohostname"
#define LIMIT "expected burst=number, interval=time, or \"off\" alone"
#define TAG_32 "abcdefghijklmnopqrstuvwxyz012345"
#define SYSLOG(text, message) "error_log", "syslog:" text " error", "syslog:" text, message

static const struct wrong {
    const char *name, *values, *word, *message;
} wrong[] = {
    { "control", "run/a.sock", "run/a.sock", "expected unix:PATH or \"off\"" },
    { "control", "unix:", "unix:", "expected unix:PATH or \"off\"" },
    { "control", "unix:" LONG, "unix:" LONG, "the path is longer than 100 bytes: \"" LONG "\"" },
    { "control", "on", "on", "expected unix:PATH or \"off\"" },
    { "control", "unix:/c mode=0666", "mode=0666", CONTROL_MODE },
    { "control", "unix:/c mode=0060", "mode=0060", CONTROL_MODE },
    { "control", "unix:/c mode=1660", "mode=1660", CONTROL_MODE },
    { "control", "unix:/c mode=rw", "mode=rw", CONTROL_MODE },
    { "control", "unix:/c mode=", "mode=", CONTROL_MODE },
    { "control", "unix:/c world", "world", "expected mode=MODE or group=NAME, once" },
    { "control", "unix:/c group=4 group=5", "group=5", "expected mode=MODE or group=NAME, once" },
    { "control", "unix:/c group=", "group=", "there is no such group" },
    { "control", "off group=4", "off", "expected unix:PATH or \"off\"" },
    { "control_read", "off", "off", "expected unix:PATH" },
    { "control_read", "unix:/c mode=0666", "mode=0666", CONTROL_MODE },
    { "daemon", "yes", "yes", "expected \"on\" or \"off\"" },
    { "daemon", "onn", "onn", "expected \"on\" or \"off\", did you mean \"on\"?" },
    { "debug_modules", "1", "1", "expected \"on\" or \"off\"" },
    { "debug_points", "on", "on", "expected \"stop\" or \"abort\"" },
    { "env", "=x", "=x", "expected NAME or NAME=value" },
    { "env", "\"\"", "", "expected NAME or NAME=value" },
    { "error_log", "\"\"", "", "expected a path, \"stderr\" or \"syslog:\"" },
    { "error_log", "e.log loud", "loud", LEVEL },
    { "error_log", "e.log notcie", "notcie", LEVEL ", did you mean \"notice\"?" },
    { "error_log", "e.log json notice", "json", LEVEL },
    { "error_log", "e.log error text", "text", "expected \"json\"" },
    { "error_log", "memory:32m", "memory:32m",
        "only files, \"stderr\" and \"syslog:\" are supported" },
    { SYSLOG("", "\"\": " PARAMETERS) },
    { SYSLOG("tag=x", "there is no \"server\"") },
    { SYSLOG("server=", "\"server=\": no host") },
    { SYSLOG("server=::1", "\"server=::1\": more than one \":\", an IPv6 address needs brackets") },
    { SYSLOG("server=1.2.3.4:0", "\"server=1.2.3.4:0\": port out of range 1 to 65535") },
    { SYSLOG("server=*", "\"server=*\": expected a host") },
    { SYSLOG("server=unix:", "\"server=unix:\": no path in the unix domain socket") },
    { SYSLOG(
        "server=1.2.3.4,server=1.2.3.5", "\"server=1.2.3.5\": there is more than one \"server\"") },
    { SYSLOG("server=1.2.3.4,", "\"\": " PARAMETERS) },
    { SYSLOG("server=1.2.3.4,hostname", "\"hostname\": " PARAMETERS) },
    { SYSLOG("server=1.2.3.4,facility=local8", "\"facility=local8\": there is no such facility") },
    { SYSLOG("server=1.2.3.4,tag=", "\"tag=\": a tag has 1 to 32 characters") },
    { SYSLOG("tag=" TAG_32 "x", "\"tag=" TAG_32 "x\": a tag has 1 to 32 characters") },
    { SYSLOG("tag=a-b", "\"tag=a-b\": a tag consists of letters, digits and \"_\"") },
    { SYSLOG("severity=loud", "\"severity=loud\": there is no such severity") },
    { SYSLOG("server=tcp://unix:/dev/log", "\"server=tcp://unix:/dev/log\": a unix domain socket "
                                           "takes datagrams, leave \"tcp://\" out") },
    { SYSLOG("server=tls://192.0.2.1",
        "\"server=tls://192.0.2.1\": expected an address, or tcp:// and an address") },
    { SYSLOG("format=rfc5425", "\"format=rfc5425\": expected rfc3164 or rfc5424") },
    { "error_log_rate_limit", "on", "on", LIMIT },
    { "error_log_rate_limit", "burst=1 off", "off", LIMIT },
    { "error_log_rate_limit", "off burst=1", "off", LIMIT },
    { "error_log_rate_limit", "burst=0", "burst=0", "expected a number between 1 and 2147483647" },
    { "error_log_rate_limit", "interval=0", "interval=0", "expected a time between 1ms and 1d" },
    { "error_log_rate_limit", "interval=2d", "interval=2d", "expected a time between 1ms and 1d" },
    { "load_module", "\"\"", "", "expected a path" },
    { "max_draining_workers", "-1", "-1", "the value must be between 0 and 2147483647" },
    { "max_draining_workers", "off", "off", "expected a number, or \"auto\"" },
    { "max_generations", "-1", "-1", "the value must be between 0 and 2147483647" },
    { "max_generations", "off", "off", "expected a number" },
    { "env_substitution", "yes", "yes", "expected \"on\" or \"off\"" },
    { "sigterm_shutdown", "gracefull", "gracefull",
        "expected \"fast\" or \"graceful\", did you mean \"graceful\"?" },
    { "sigterm_shutdown", "quit", "quit", "expected \"fast\" or \"graceful\"" },
    { "master_process", "of", "of", "expected \"on\" or \"off\", did you mean \"off\"?" },
    { "pid", "\"\"", "", "expected a path" },
    { "sandbox", "yes", "yes", "expected \"off\", \"on\" or \"strict\"" },
    { "sandbox", "stricd", "stricd",
        "expected \"off\", \"on\" or \"strict\", did you mean \"strict\"?" },
    { "thread_pool", "disk max_queue=2", "disk", "expected threads=number after the name" },
    { "thread_pool", "\"\" threads=2", "", "expected a name" },
    { "thread_pool", "default threads=0", "threads=0", "expected a number between 1 and 1024" },
    { "thread_pool", "default max_queue=x", "max_queue=x",
        "expected a number between 1 and 2147483647" },
    { "thread_pool", "default max", "max", "expected threads=number or max_queue=number" },
    { "timer_resolution", "100x", "100x", TIME },
    { "timer_resolution", "-1", "-1", TIME },
    { "timer_resolution", "2h", "2h", "the value must be between 0 and 3600000 milliseconds" },
    { "worker_cpu_affinity", "0102", "0102", "a mask consists of the digits 0 and 1" },
    { "worker_cpu_affinity", "01 000", "000", "a mask needs at least one processor" },
    { "worker_cpu_affinity", "auto 01 11", "11", "\"auto\" takes one mask" },
    { "worker_cpu_affinity", "01 auto", "auto", "a mask consists of the digits 0 and 1" },
    { "worker_priority", "21", "21", "the value must be between -20 and 20" },
    { "worker_priority", "-21", "-21", "the value must be between -20 and 20" },
    { "worker_priority", "high", "high", "expected a number" },
    { "worker_processes", "0", "0", "expected a number between 1 and 511, or \"auto\"" },
    { "worker_processes", "512", "512", "expected a number between 1 and 511, or \"auto\"" },
    { "worker_processes", "Auto", "Auto", "expected a number between 1 and 511, or \"auto\"" },
    { "worker_rlimit_core", "16mb", "16mb", "expected a size such as 512, 16k or 1m" },
    { "worker_rlimit_nofile", "0", "0", "the value must be between 1 and 2147483647" },
    { "worker_rlimit_nofile", "1k", "1k", "expected a number" },
    { "worker_shutdown_timeout", "soon", "soon", TIME },
    { "worker_shutdown_timeout", "99999999999999999999", "99999999999999999999",
        "the value is too large" },
    { "worker_start_timeout", "soon", "soon", TIME },
    { "worker_watchdog", "soon", "soon", TIME },
    { "working_directory", "\"\"", "", "expected a path" },

    { "accept_mutex", "true", "true", "expected \"on\" or \"off\"" },
    { "accept_mutex_delay", "0", "0", "the value must be between 1 and 3600000 milliseconds" },
    { "accept_mutex_delay", "off", "off", TIME },
    { "stall_threshold", "often", "often", TIME },
    { "busy_poll", "50", "50", "expected a time such as 50us or 1ms" },
    { "busy_poll", "1s", "1s", "expected a time such as 50us or 1ms" },
    { "busy_poll", "101ms", "101ms", "the value must be between 0 and 100000 microseconds" },
    { "connections", "0", "0", "the value must be between 1 and 16777216" },
    { "debug_connection", "\"local host\"", "local host", "invalid host" },
    { "debug_connection", "localhost/8", "localhost/8", "invalid address" },
    { "debug_connection", "10.0.0", "10.0.0", "invalid address" },
    { "debug_connection", "10.0.0.0/33", "10.0.0.0/33", "prefix length out of range 0 to 32" },
#if HAVE_IO_URING
    { "io_uring_buffers", "0", "0", "the value must be between 1 and 32768" },
    { "io_uring_buffers", "32769", "32769", "the value must be between 1 and 32768" },
    { "io_uring_entries", "0", "0", "the value must be between 1 and 32768" },
#endif
#if HAVE_EPOLL
    { "epoll_events", "0", "0", "the value must be between 1 and 65536" },
    { "epoll_events", "65537", "65537", "the value must be between 1 and 65536" },
#endif
#if HAVE_KQUEUE
    { "kqueue_changes", "32769", "32769", "the value must be between 1 and 32768" },
    { "kqueue_events", "65537", "65537", "the value must be between 1 and 65536" },
#endif
#if HAVE_EVENTPORT
    { "eventport_events", "0", "0", "the value must be between 1 and 65536" },
#endif
#if HAVE_DEVPOLL
    { "devpoll_changes", "0", "0", "the value must be between 1 and 65536" },
    { "devpoll_events", "65537", "65537", "the value must be between 1 and 65536" },
#endif
    { "accept_share", "no", "no", "expected \"on\" or \"off\", did you mean \"on\"?" },
    { "multi_accept", "offf", "offf", "expected \"on\" or \"off\", did you mean \"off\"?" },
    { "reclaim_idle", "onn", "onn", "expected \"on\" or \"off\", did you mean \"on\"?" },
    { "use", "selec", "selec", MECHANISM ", did you mean \"select\"?" },
    { "use", "mach", "mach", MECHANISM },
    { "worker_aio_requests", "0", "0", "the value must be between 1 and 65536" },
    { "worker_connections", "-1", "-1", "the value must be between 1 and 16777216" },
    { "worker_connections", "1k", "1k", "expected a number, or \"auto\"" },
    { "worker_connections", "automatic", "automatic", "expected a number, or \"auto\"" },

#include "settings/wrong_stream.def"
};

#define METHOD                                                                                     \
    "expected \"least_conn\", or \"least_time=\" and \"connect\", \"first_byte\" or \"last_byte\""

static const struct wrong wrong_upstream[] = {
#include "settings/wrong_upstream.def"
};

/* Directives with any value, without a value, or with a separate test. */
static const char *const exempt[] = { "events", "geo", "include", "listen", "map", "server", "set",
    "split_clients", "stream", "user", "daytime", "discard", "echo", "file", "pass", "resolver",
    "resolver_timeout", "return", "server_name", "status_page", "stub_status", "access_log",
    "log_format", "open_log_file_cache", "proxy_protocol_timeout", "set_real_ip_from",
    "limit_conn_zone", "upstream", "least_conn", "match", "ssl_ciphers", "ssl_client_certificate",
    "ssl_conf_command", "ssl_alpn_challenge_directory", "ssl_crl", "ssl_dhparam", "ssl_key_log",
    "proxy_ssl_key_log", "ssl_password_file", "ssl_session_ticket_key", "ssl_stapling_file",
    "ssl_trusted_certificate", "proxy_bind", "proxy_download_rate", "proxy_pass", "proxy_protocol",
    "proxy_upload_rate", "proxy_ssl_ciphers", "proxy_ssl_conf_command", "proxy_ssl_crl",
    "proxy_ssl_name", "proxy_ssl_password_file", "proxy_ssl_trusted_certificate" };

/* A configuration on a single line with the directive in its first allowed place. Returns the
 * column of the first value. */
static unsigned wrap_directive(char text[512], unsigned at, const char *name, const char *values)
{
    const char *before = "", *behind = " events { }";

    if (at & CONTEXT_EVENTS) {
        before = "events { ";
        behind = " }";
    } else if (at & CONTEXT_SERVER) {
        before = "events { } stream { server { listen 127.0.0.1:1; ";
        behind = " } }";
    } else if (at & CONTEXT_UPSTREAM) {
        before = "events { } stream { upstream any { ";
        behind = " } }";
    } else if (at & CONTEXT_STREAM) {
        before = "events { } stream { ";
        behind = " }";
    }
    snprintf(text, 512, "%s%s %s;%s", before, name, values, behind);
    return (unsigned)(strlen(before) + strlen(name)) + 2;
}

static unsigned place_of(const char *name)
{
    const struct directive_case *directive = directive_cases();

    while (directive->name != NULL && strcmp(directive->name, name) != 0)
        directive++;
    ck_assert_msg(directive->name != NULL, "\"%s\" is no directive", name);
    return directive->at;
}

static void try_wrong(struct loading *loading, const struct wrong *row, unsigned at)
{
    char text[512], expected[512];
    unsigned column = wrap_directive(text, at, row->name, row->values);

    if (row->word[0] != '\0') /* the last of the kind: a value may stand there twice */
        column += (unsigned)(strstr(row->values, row->word) - row->values);
    if (strchr(row->word, ' ') != NULL) /* the quote */
        column--;
    snprintf(expected, sizeof(expected),
        "invalid value \"%s\" in \"%s\" directive: %s in /main:1:%u\n", row->word, row->name,
        row->message, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_wrong_value_is_refused_with_what_was_expected)
{
    struct loading loading;

    loading_begin(&loading);
    for (size_t i = 0; i < countof(wrong); i++)
        try_wrong(&loading, &wrong[i], place_of(wrong[i].name));
    for (size_t i = 0; i < countof(wrong_upstream); i++)
        try_wrong(&loading, &wrong_upstream[i], CONTEXT_UPSTREAM);
    loading_end(&loading);
}
END_TEST

static bool is_exempt(const char *name)
{
    for (size_t i = 0; i < countof(exempt); i++)
        if (strcmp(exempt[i], name) == 0)
            return true;
    return false;
}

static bool is_tried(const struct wrong *rows, size_t n, const char *name)
{
    while (n > 0 && strcmp(rows->name, name) != 0) {
        rows++;
        n--;
    }
    return n > 0;
}

START_TEST(every_directive_refuses_something)
{
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++) {
        bool is_upstream = row->at == CONTEXT_UPSTREAM;
        bool found = is_exempt(row->name) ||
                     (is_upstream ? is_tried(wrong_upstream, countof(wrong_upstream), row->name)
                                  : is_tried(wrong, countof(wrong), row->name));

        ck_assert_msg(found, "no wrong value of \"%s\" is tried", row->name);
    }
}
END_TEST

START_TEST(times_sizes_and_numbers_are_nginx_s)
{
    struct loading loading;
    const struct core_settings *core;

    loading_begin(&loading);
    accept_text(&loading,
        "timer_resolution off; worker_shutdown_timeout \"1h 30m\"; worker_rlimit_core 1G;"
        "worker_priority 20; events { accept_mutex_delay 2; }",
        "");
    core = &loading.cycle->core;
    ck_assert_int_eq(core->timer_resolution, 0);
    ck_assert_int_eq(core->worker_shutdown_timeout, 90 * 60 * 1000);
    ck_assert_int_eq(core->rlimit_core, 1024 * 1024 * 1024);
    ck_assert_int_eq(core->worker_priority, 20);
    ck_assert_int_eq(loading.cycle->events.accept_mutex_delay, 2000);

    accept_text(&loading, "worker_shutdown_timeout 0; events { }", "");
    ck_assert_int_eq(loading.cycle->core.worker_shutdown_timeout, 0);
    loading_end(&loading);
}
END_TEST

START_TEST(as_many_workers_as_processors)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading, "worker_processes auto; events { }", "");
    ck_assert_int_eq(loading.cycle->core.worker_processes, os_cpu_allowed(""));
    accept_text(&loading, "worker_processes 511; events { }", "");
    ck_assert_int_eq(loading.cycle->core.worker_processes, 511);
    loading_end(&loading);
}
END_TEST

START_TEST(affinity_by_itself_or_within_a_mask)
{
    struct loading loading;
    const struct core_settings *core;
    struct cpu_mask own;

    loading_begin(&loading);
    accept_text(&loading, "worker_cpu_affinity auto; events { }", "");
    core = &loading.cycle->core;
    ck_assert(core->cpu_auto);
    if (os_cpu_bound(own.words, CPU_MASK_WORDS) == -1)
        memset(&own, 0xff, sizeof(own));
    ck_assert_mem_eq(&own, &core->cpus[0], sizeof(own));

    accept_text(&loading, "worker_cpu_affinity auto 0101; events { }", "");
    core = &loading.cycle->core;
    ck_assert(core->cpu_auto);
    ck_assert_uint_eq(core->cpu_n, 1);
    ck_assert_uint_eq(cpu_mask_count(&core->cpus[0]), 2);
    ck_assert(cpu_mask_has(&core->cpus[0], 0) && cpu_mask_has(&core->cpus[0], 2));
    loading_end(&loading);
}
END_TEST

/* Loads the text and "control"; returns the path, or NULL. */
static const struct {
    const char *text, *path;
} controls[] = {
    { "", "/default/pid.sock" },
    { "pid /a/b.pid;", "/a/b.sock" },
    { "pid /a/.pid;", "/a/.sock" },
    { "pid /a/b.pid; control unix:/c;", "/c" },
    { "control unix:/c; pid /a/b.pid;", "/c" },
    { "control off;", NULL },
    { "control off; pid /a/b.pid;", NULL },
};

START_TEST(the_control_socket_lies_beside_the_pid_file)
{
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(controls); i++)
        for (int only_pid = 0; only_pid < 2; only_pid++) {
            const struct core_settings *core;

            loading.options.only_pid = only_pid == 1;
            snprintf(text, sizeof(text), "%s events { }", controls[i].text);
            accept_text(&loading, text, "");
            core = &loading.cycle->core;
            if (controls[i].path == NULL)
                ck_assert_ptr_null(core->control.path);
            else
                ck_assert_str_eq(core->control.path, controls[i].path);
        }
    loading.options.only_pid = false;
    accept_text(&loading, "pid " LONG ".pid; events { }",
        "warning: \"" LONG
        ".sock\" is too long for a control socket, so there is none: set another path with "
        "\"control\"\n");
    ck_assert_ptr_null(loading.cycle->core.control.path);
    loading_end(&loading);
}
END_TEST

/* A mistake in the value does not hide the pid. */
START_TEST(a_wrong_control_socket_does_not_hide_the_pid)
{
    struct loading loading;

    loading_begin(&loading);
    loading.options.only_pid = true;
    accept_text(&loading, "control tcp:1; events { }", "");
    ck_assert_str_eq(loading.cycle->core.pid, "/default/pid");
    accept_text(&loading, "pid /a/b.pid; control unix:" LONG "; bogus", "");
    ck_assert_str_eq(loading.cycle->core.pid, "/a/b.pid");
    loading_end(&loading);
}
END_TEST

START_TEST(env_keeps_order_and_values)
{
    struct loading loading;
    const struct core_settings *core;

    loading_begin(&loading);
    accept_text(&loading, "env B; env \"A=x y\"; env C=; env D=a=b; events { }", "");
    core = &loading.cycle->core;
    ck_assert_uint_eq(core->env_n, 4);
    ck_assert_str_eq(core->env[0], "B");
    ck_assert_str_eq(core->env[1], "A=x y");
    ck_assert_str_eq(core->env[2], "C=");
    ck_assert_str_eq(core->env[3], "D=a=b");
    loading_end(&loading);
}
END_TEST

START_TEST(each_mechanism_can_be_chosen)
{
    struct loading loading;
    char text[64];

    loading_begin(&loading);
    for (int i = 0; mechanism_table[i] != NULL; i++) {
        if (!mechanism_available(mechanism_table[i]))
            continue;
        snprintf(text, sizeof(text), "events { use %s; }", mechanism_table[i]->name);
        accept_text(&loading, text, "");
        ck_assert_ptr_eq(loading.cycle->events.mechanism, mechanism_table[i]);
        for (int k = 0; k < MECHANISM_OPTIONS; k++)
            ck_assert_int_eq(loading.cycle->events.mechanism_values.of[k],
                mechanism_table[i]->options[k].initial);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(a_mechanism_with_a_limit_takes_no_more_connections)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, "events { use select; worker_connections 1025; }",
        "\"select\" serves at most 1024 descriptors, and 1025 \"worker_connections\" are more: "
        "lower the number or use another mechanism in /main:1:14\n");
    accept_text(&loading, "events { use select; worker_connections 1024; }", "");
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_directive_refuses_something);
    tcase_add_test(tcase, a_wrong_value_is_refused_with_what_was_expected);
    tcase_add_test(tcase, times_sizes_and_numbers_are_nginx_s);
    tcase_add_test(tcase, as_many_workers_as_processors);
    tcase_add_test(tcase, affinity_by_itself_or_within_a_mask);
    tcase_add_test(tcase, the_control_socket_lies_beside_the_pid_file);
    tcase_add_test(tcase, a_wrong_control_socket_does_not_hide_the_pid);
    tcase_add_test(tcase, env_keeps_order_and_values);
    tcase_add_test(tcase, each_mechanism_can_be_chosen);
    tcase_add_test(tcase, a_mechanism_with_a_limit_takes_no_more_connections);
}

TEST_MAIN("values", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings/rows.h"

#include <arpa/inet.h>
#include <check.h>
#include <limits.h>
#include <string.h>

static const struct server *server_of(const struct cycle *cycle)
{
    ck_assert(!STAILQ_EMPTY(&cycle->stream.servers));
    return STAILQ_FIRST(&cycle->stream.servers);
}

static void check_env(const struct cycle *cycle)
{
    ck_assert_uint_eq(cycle->core.env_n, 1);
    ck_assert_str_eq(cycle->core.env[0], "A=1");
}

static void check_control(const struct cycle *cycle)
{
    ck_assert_str_eq(strrchr(cycle->core.control, '/'), "/a.sock");
}

static void check_error_log(const struct cycle *cycle)
{
    const char *name = strrchr(cycle->core.logs[0].path, '/');

    ck_assert_uint_eq(cycle->core.log_n, 1);
    ck_assert_str_eq(name, "/error.log");
    ck_assert_int_eq(cycle->core.logs[0].level, LEVEL_NOTICE);
    ck_assert_int_eq(cycle->core.logs[0].fd, -1);
}

static void check_rate_limit(const struct cycle *cycle)
{
    ck_assert_int_eq(cycle->core.log_burst, 7);
    ck_assert_int_eq(cycle->core.log_interval, 30000);
}

static void check_affinity(const struct cycle *cycle)
{
    ck_assert(!cycle->core.cpu_auto);
    ck_assert_uint_eq(cycle->core.cpu_n, 2);
    ck_assert_int_eq(CPU_COUNT(&cycle->core.cpus[0]), 1);
    ck_assert(CPU_ISSET(0, &cycle->core.cpus[0]));
    ck_assert_int_eq(CPU_COUNT(&cycle->core.cpus[1]), 2);
    ck_assert(CPU_ISSET(1, &cycle->core.cpus[1]) && CPU_ISSET(2, &cycle->core.cpus[1]));
}

static void check_debug(const struct cycle *cycle)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000207) };

    ck_assert_uint_eq(cycle->events.debug_n, 1);
    ck_assert(address_block_matches(&cycle->events.debug[0], (struct sockaddr *)&in));
}

static void check_use(const struct cycle *cycle)
{
    ck_assert_ptr_eq(cycle->events.mechanism, &mechanism_poll);
}

static void check_epoll_events(const struct cycle *cycle)
{
    if (cycle->events.mechanism == &mechanism_epoll)
        ck_assert_int_eq(cycle->events.mechanism_option, 32);
}

static void check_included(const struct cycle *cycle)
{
    const struct conf_file *file = STAILQ_LAST(&cycle->source.files, conf_file, link);

    ck_assert_str_eq(strrchr(file->name, '/'), "/other");
}

static void check_module(const struct cycle *cycle)
{
    const struct module *module = SLIST_FIRST(&cycle->modules);

    ck_assert_ptr_nonnull(module);
    ck_assert_str_eq(module->protocol->name, "plain_a");
}

static void check_listen(const struct cycle *cycle)
{
    ck_assert_str_eq(STAILQ_FIRST(&cycle->stream.listeners)->text, "127.0.0.1:2");
}

static void check_server(const struct cycle *cycle)
{
    ck_assert_ptr_nonnull(server_of(cycle));
}

/* The server of a protocol whose directive bears the protocol's name. */
#define PROTOCOL(protocol_name)                                                                    \
    __attribute__((unused)) static void check_##protocol_name(const struct cycle *cycle)           \
    {                                                                                              \
        ck_assert_str_eq(server_of(cycle)->protocol->name, #protocol_name);                        \
    }
#include "protocols/protocols.def"
#undef PROTOCOL

static void check_returned_text(const struct cycle *cycle)
{
    const char *const *text = server_of(cycle)->protocol_conf;

    check_return(cycle);
    ck_assert_str_eq(*text, "hello\n");
}

#define MAIN .at = CONTEXT_MAIN, .belongs = "the main context"
#define EVENTS .at = CONTEXT_EVENTS, .belongs = "\"events\""
#define STREAM .at = CONTEXT_STREAM, .belongs = "\"stream\""
#define SERVER .at = CONTEXT_SERVER, .belongs = "\"server\""
#define STREAM_AND_SERVER                                                                          \
    .at = CONTEXT_STREAM | CONTEXT_SERVER, .belongs = "\"stream\" or \"server\""
#define ARGS(n, m) .least = (n), .most = (m)
#define NUMBER(in, type, member, is, is_initially)                                                 \
    .in = true, .offset = offsetof(struct type, member), .expected = (is), .initial = (is_initially)
#define CORE(member, is, initially) NUMBER(in_core, core_settings, member, is, initially)
#define EVENT(member, is, initially) NUMBER(in_events, events_settings, member, is, initially)
#define SETTING(member, is, initially) NUMBER(in_server, server_settings, member, is, initially)
#define PATH(member, is, is_initially)                                                             \
    .in_core = true, .text = true, .offset = offsetof(struct core_settings, member),               \
    .expected_text = (is), .initial_text = (is_initially)
#define CHECK(function) .check = (function)

const struct row directive_rows[] = {
    { "control", "unix:run/a.sock;", MAIN, ARGS(1, 1), CHECK(check_control),
        .manual = "unix:@runstatedir@/forkbeard.sock" },
    { "daemon", "off;", MAIN, ARGS(1, 1), CORE(daemon, 0, 1), .manual = "on" },
    { "env", "A=1;", MAIN, ARGS(1, 1), CHECK(check_env), .again = "B;", .manual = "TZ" },
    { "env_substitution", "on;", MAIN, ARGS(1, 1), CORE(env_substitution, 1, 0), .manual = "off" },
    { "error_log", "error.log notice;", MAIN, ARGS(1, 3), CHECK(check_error_log),
        .again = "stderr;", .manual = "@localstatedir@/log/forkbeard/error.log error" },
    { "error_log_rate_limit", "burst=7 interval=30s;", MAIN, ARGS(1, 2), CHECK(check_rate_limit),
        .manual = "burst=1000 interval=1s" },
    { "events", "{ }", MAIN, ARGS(0, 0), .manual = "none" },
    { "include", "other;", ARGS(1, 1), CHECK(check_included), .at = CONTEXT_ANY, .again = "other;",
        .manual = "none" },
    { "load_module", "plain_a.so;", MAIN, ARGS(1, 1), CHECK(check_module), .again = "plain_b.so;",
        .manual = "none" },
    { "master_process", "off;", MAIN, ARGS(1, 1), CORE(master_process, 0, 1), .manual = "on" },
    { "max_generations", "3;", MAIN, ARGS(1, 1), CORE(max_generations, 3, 8), .manual = "8" },
    { "pid", "run/pid;", MAIN, ARGS(1, 1), PATH(pid, "/run/pid", "/default/pid"),
        .manual = "@runstatedir@/forkbeard.pid" },
    { "sandbox", "strict;", MAIN, ARGS(1, 1), CORE(sandbox, SANDBOX_STRICT, SANDBOX_ON),
        .manual = "on" },
    { "sigterm_shutdown", "graceful;", MAIN, ARGS(1, 1), CORE(sigterm_graceful, 1, 0),
        .manual = "fast" },
    { "stream", "{ }", MAIN, ARGS(0, 0), .manual = "none" },
    { "thread_pool", "default threads=3 max_queue=9;", MAIN, ARGS(2, 3), CORE(threads, 3, 32),
        .manual = "default threads=32 max_queue=65536" },
    { "timer_resolution", "100ms;", MAIN, ARGS(1, 1), CORE(timer_resolution, 100, 0),
        .manual = "off" },
    { "user", "root;", MAIN, ARGS(1, 2), .manual = "@DEFAULT_USER@" },
    { "worker_cpu_affinity", "01 110;", MAIN, ARGS(1, UCHAR_MAX), CHECK(check_affinity),
        .manual = "none" },
    { "worker_priority", "-5;", MAIN, ARGS(1, 1), CORE(worker_priority, -5, 0), .manual = "0" },
    { "worker_processes", "3;", MAIN, ARGS(1, 1), CORE(worker_processes, 3, 1), .manual = "1" },
    { "worker_rlimit_core", "16m;", MAIN, ARGS(1, 1), CORE(rlimit_core, 16777216, -1),
        .manual = "none" },
    { "worker_rlimit_nofile", "2048;", MAIN, ARGS(1, 1), CORE(rlimit_nofile, 2048, -1),
        .manual = "none" },
    { "worker_shutdown_timeout", "5s;", MAIN, ARGS(1, 1), CORE(worker_shutdown_timeout, 5000, 0),
        .manual = "off" },
    { "worker_start_timeout", "9s;", MAIN, ARGS(1, 1), CORE(worker_start_timeout, 9000, 30000),
        .manual = "30s" },
    { "worker_watchdog", "9s;", MAIN, ARGS(1, 1), CORE(worker_watchdog, 9000, 60000),
        .manual = "60s" },
    { "working_directory", "w;", MAIN, ARGS(1, 1), PATH(working_directory, "/w", NULL),
        .manual = "none" },

    { "accept_mutex", "off;", EVENTS, ARGS(1, 1), EVENT(accept_mutex, 0, 1), .manual = "on" },
    { "accept_mutex_delay", "20ms;", EVENTS, ARGS(1, 1), EVENT(accept_mutex_delay, 20, 500),
        .manual = "500ms" },
    { "connections", "64;", EVENTS, ARGS(1, 1), EVENT(worker_connections, 64, 512),
        .manual = "512" },
    { "debug_connection", "192.0.2.0/24;", EVENTS, ARGS(1, 1), CHECK(check_debug), .again = "::1;",
        .manual = "none" },
    { "epoll_events", "32;", EVENTS, ARGS(1, 1), CHECK(check_epoll_events), .manual = "512" },
    { "multi_accept", "on;", EVENTS, ARGS(1, 1), EVENT(multi_accept, 1, 0), .manual = "off" },
    { "use", "poll;", EVENTS, ARGS(1, 1), CHECK(check_use), .manual = "the best available" },
    { "worker_connections", "64;", EVENTS, ARGS(1, 1), EVENT(worker_connections, 64, 512),
        .manual = "512" },

    { "first_byte_timeout", "5s;", STREAM_AND_SERVER, ARGS(1, 1),
        SETTING(first_byte_timeout, 5000, 60000), .manual = "60s" },
    { "idle_timeout", "\"1m 30s\";", STREAM_AND_SERVER, ARGS(1, 1),
        SETTING(idle_timeout, 90000, 600000), .manual = "10m" },
    { "listen", "127.0.0.1:2;", SERVER, ARGS(1, 32), CHECK(check_listen), .again = "127.0.0.1:3;",
        .manual = "none" },
    { "server", "{ listen 127.0.0.1:2; }", STREAM, ARGS(0, 0), CHECK(check_server),
        .again = "{ listen 127.0.0.1:3; }", .manual = "none" },
    { "tcp_nodelay", "off;", STREAM_AND_SERVER, ARGS(1, 1), SETTING(tcp_nodelay, 0, 1),
        .manual = "on" },

    { "daytime", ";", SERVER, ARGS(0, 0), CHECK(check_daytime), .manual = "none" },
    { "discard", ";", SERVER, ARGS(0, 0), CHECK(check_discard), .manual = "none" },
    { "echo", ";", SERVER, ARGS(0, 0), CHECK(check_echo), .manual = "none" },
    { "return", "\"hello\\n\";", SERVER, ARGS(1, 1), CHECK(check_returned_text), .manual = "none" },
    { "stub_status", ";", SERVER, ARGS(0, 0), CHECK(check_stub_status), .manual = "none" },
    { .name = NULL },
};

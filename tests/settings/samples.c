/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of every directive, and the cases that are made of them and of the daemon's tables. */
#include "settings/samples.h"

#include "base/cpu_mask.h"
#include "protocols/table.h"
#include "support/test.h"

#include <arpa/inet.h>
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

static void check_thread_pool(const struct cycle *cycle)
{
    ck_assert_int_eq(cycle->core.pool.threads, 3);
}

static void check_affinity(const struct cycle *cycle)
{
    ck_assert(!cycle->core.cpu_auto);
    ck_assert_uint_eq(cycle->core.cpu_n, 2);
    ck_assert_uint_eq(cpu_mask_count(&cycle->core.cpus[0]), 1);
    ck_assert(cpu_mask_has(&cycle->core.cpus[0], 0));
    ck_assert_uint_eq(cpu_mask_count(&cycle->core.cpus[1]), 2);
    ck_assert(cpu_mask_has(&cycle->core.cpus[1], 1) && cpu_mask_has(&cycle->core.cpus[1], 2));
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

/* An option of one event mechanism is 16, and no other. */
static void check_option(const struct cycle *cycle)
{
    unsigned n = 0;

    for (int i = 0; mechanism_table[i] != NULL; i++)
        for (int k = 0; k < MECHANISM_OPTIONS; k++)
            n += cycle->events.all_values[i].of[k] == 16;
    ck_assert_uint_eq(n, 1);
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
    ck_assert_str_eq(STAILQ_FIRST(&cycle->stream.listeners.list)->text, "127.0.0.1:2");
}

static void check_server(const struct cycle *cycle)
{
    ck_assert_ptr_nonnull(server_of(cycle));
}

static void check_return(const struct cycle *cycle)
{
    const char *const *text = server_of(cycle)->protocol_conf;

    ck_assert_str_eq(server_of(cycle)->protocol->name, "return");
    ck_assert_str_eq(*text, "hello\n");
}

/* The protocol's configuration, as far as its directives tell. */
struct file_conf {
    const char *path;
    int64_t directio;
};

static void check_file(const struct cycle *cycle)
{
    const struct file_conf *conf = server_of(cycle)->protocol_conf;

    ck_assert_str_eq(server_of(cycle)->protocol->name, "file");
    ck_assert_str_eq(strrchr(conf->path, '/'), "/hello");
}

/* In `stream {}`, whose server is no protocol's, it sets nothing. */
static void check_directio(const struct cycle *cycle)
{
    const struct file_conf *conf = server_of(cycle)->protocol_conf;

    if (server_of(cycle)->protocol != NULL)
        ck_assert_int_eq(conf->directio, 4 * 1024 * 1024);
}

/* A protocol whose directive has no value is known by its name. */
#define CHECK_PROTOCOL(protocol_name)                                                              \
    static void check_##protocol_name(const struct cycle *cycle)                                   \
    {                                                                                              \
        ck_assert_str_eq(server_of(cycle)->protocol->name, #protocol_name);                        \
    }
CHECK_PROTOCOL(daytime)
CHECK_PROTOCOL(discard)
CHECK_PROTOCOL(echo)
CHECK_PROTOCOL(stub_status)

#define NUMBER(is) .field = FIELD_NUMBER, .number = (is)
#define PATH(is, initially) .field = FIELD_TEXT, .text = (is), .initial_text = (initially)
#define CHECK(function) .check = (function)

/* A directive that may be repeated has `again`. */
static const struct sample samples[] = {
    { "control", "unix:run/a.sock", CHECK(check_control) },
    { "daemon", "off", NUMBER(0) },
    { "debug_points", "abort", NUMBER(LOG_POINT_ABORT) },
    { "env", "A=1", CHECK(check_env), .again = "B" },
    { "env_substitution", "on", NUMBER(1) },
    { "error_log", "error.log notice", CHECK(check_error_log), .again = "stderr" },
    { "error_log_rate_limit", "burst=7 interval=30s", CHECK(check_rate_limit) },
    { "events", "{ }", .again = NULL },
    { "include", "other", CHECK(check_included), .again = "other" },
    { "load_module", "plain_a.so", CHECK(check_module), .again = "plain_b.so" },
    { "master_process", "off", NUMBER(0) },
    { "max_generations", "3", NUMBER(3) },
    { "pid", "run/pid", PATH("/run/pid", "/default/pid") },
    { "sandbox", "strict", NUMBER(SANDBOX_STRICT) },
    { "sigterm_shutdown", "graceful", NUMBER(1) },
    { "stream", "{ }", .again = NULL },
    { "thread_pool", "default threads=3 max_queue=9", CHECK(check_thread_pool),
        .again = "disk threads=2" },
    { "timer_resolution", "100ms", NUMBER(100) },
    { "user", "root", .again = NULL },
    { "worker_cpu_affinity", "01 110", CHECK(check_affinity) },
    { "worker_priority", "-5", NUMBER(-5) },
    { "worker_processes", "3", NUMBER(3) },
    { "worker_rlimit_core", "16m", NUMBER(16777216), .initial = -1 },
    { "worker_rlimit_nofile", "2048", NUMBER(2048), .initial = -1 },
    { "worker_shutdown_timeout", "5s", NUMBER(5000) },
    { "worker_start_timeout", "9s", NUMBER(9000) },
    { "worker_watchdog", "9s", NUMBER(9000) },
    { "working_directory", "w", PATH("/w", NULL) },
    { "accept_mutex", "off", NUMBER(0) },
    { "accept_mutex_delay", "20ms", NUMBER(20) },
    { "busy_poll", "50us", NUMBER(50) },
    { "connections", "64", NUMBER(64) },
    { "debug_connection", "192.0.2.0/24", CHECK(check_debug), .again = "::1" },
#if HAVE_EPOLL
    { "epoll_events", "16", CHECK(check_option) },
#endif
#if HAVE_KQUEUE
    { "kqueue_changes", "16", CHECK(check_option) },
    { "kqueue_events", "16", CHECK(check_option) },
#endif
#if HAVE_EVENTPORT
    { "eventport_events", "16", CHECK(check_option) },
#endif
#if HAVE_DEVPOLL
    { "devpoll_changes", "16", CHECK(check_option) },
    { "devpoll_events", "16", CHECK(check_option) },
#endif
#if HAVE_IO_URING
    { "io_uring_buffers", "16", CHECK(check_option) },
    { "io_uring_entries", "16", CHECK(check_option) },
#endif
    { "accept_share", "off", NUMBER(0) },
    { "multi_accept", "on", NUMBER(1) },
    { "reclaim_idle", "off", NUMBER(0) },
    { "stall_threshold", "30ms", NUMBER(30) },
    { "use", "poll", CHECK(check_use) },
    { "worker_aio_requests", "7", NUMBER(7) },
    { "worker_connections", "64", NUMBER(64) },
    { "aio", "threads", NUMBER(FB_AIO_THREADS) },
    { "directio_alignment", "512", NUMBER(512) },
    { "first_byte_timeout", "5s", NUMBER(5000) },
    { "idle_timeout", "\"1m 30s\"", NUMBER(90000) },
    { "listen", "127.0.0.1:2", CHECK(check_listen), .again = "127.0.0.1:3" },
    { "server", "{ listen 127.0.0.1:2; }", CHECK(check_server),
        .again = "{ listen 127.0.0.1:3; }" },
    { "tcp_nodelay", "off", NUMBER(0) },
    { "daytime", "", CHECK(check_daytime) },
    { "discard", "", CHECK(check_discard) },
    { "echo", "", CHECK(check_echo) },
    { "directio", "4m", CHECK(check_directio) },
    { "file", "hello", CHECK(check_file) },
    { "return", "\"hello\\n\"", CHECK(check_return) },
    { "stub_status", "", CHECK(check_stub_status) },
};

#define CASES_MAX (countof(samples) + 1)

static struct directive_case cases[CASES_MAX];

static const struct sample *find_sample(const char *name)
{
    for (size_t i = 0; i < countof(samples); i++)
        if (strcmp(samples[i].name, name) == 0)
            return &samples[i];
    ck_abort_msg("\"%s\" has no sample in samples.c", name);
    return NULL;
}

/* The cases end where one has no name. */
static struct directive_case *add_case(const char *name)
{
    struct directive_case *added = cases;

    while (added->name != NULL) {
        ck_assert_msg(strcmp(added->name, name) != 0, "two tables have \"%s\"", name);
        added++;
    }
    added->name = name;
    added->sample = find_sample(name);
    return added;
}

static void add_table(const struct setting *table, enum field_of field_of)
{
    for (; table->name != NULL; table++) {
        struct directive_case *added = add_case(table->name);

        added->at = table->at;
        added->least = table->least;
        added->most = table->most;
        added->repeats = table->repeats;
        added->block = table->block;
        added->initial = table->initial;
        added->unset = table->unset;
        added->field_of = field_of;
        added->offset = table->offset;
    }
}

static void add_mechanism_option(const struct mechanism_option *option)
{
    struct directive_case *added;

    if (option->name == NULL)
        return;
    added = add_case(option->name);
    added->at = CONTEXT_EVENTS;
    added->least = added->most = 1;
    snprintf(added->number, sizeof(added->number), "%lld", (long long)option->initial);
    added->initial = added->number;
}

static void add_mechanism_options(void)
{
    for (int i = 0; mechanism_table[i] != NULL; i++)
        for (int k = 0; k < MECHANISM_OPTIONS; k++)
            add_mechanism_option(&mechanism_table[i]->options[k]);
}

/* Writes the directive, with its sample, that gives a server to the protocol. */
static void write_handler(const fb_protocol *protocol, char text[64])
{
    for (unsigned i = 0; i < protocol->directive_n; i++) {
        const char *name = protocol->directives[i].name;

        if (protocol->directives[i].flags & FB_DIRECTIVE_HANDLER)
            snprintf(text, 64, "%s %s; ", name, find_sample(name)->value);
    }
}

static void add_protocol(const fb_protocol *protocol)
{
    for (unsigned i = 0; i < protocol->directive_n; i++) {
        const fb_directive *directive = &protocol->directives[i];
        struct directive_case *added = add_case(directive->name);

        added->at = directive->flags & FB_DIRECTIVE_HANDLER ? CONTEXT_SERVER
                                                            : CONTEXT_STREAM | CONTEXT_SERVER;
        added->least = added->most = directive->value != FB_VALUE_NONE;
        if (directive->value == FB_VALUE_CUSTOM) {
            added->least = directive->args_least;
            added->most = directive->args_most;
        }
        added->initial = directive->initial;
        added->unset = directive->initial == NULL ? "none" : NULL;
        if (!(directive->flags & FB_DIRECTIVE_HANDLER))
            write_handler(protocol, added->handler);
    }
}

const struct directive_case *directive_cases(void)
{
    size_t n = 0;

    if (cases[0].name != NULL)
        return cases;
    add_table(core_table, FIELD_OF_CORE);
    add_table(events_table, FIELD_OF_EVENTS);
    add_table(stream_table, FIELD_OF_SERVER);
    add_mechanism_options();
    for (int i = 0; protocols_builtin[i] != NULL; i++)
        add_protocol(protocols_builtin[i]);
    while (cases[n].name != NULL)
        n++;
    ck_assert_msg(n == countof(samples), "samples.c has samples of directives that there are not");
    return cases;
}

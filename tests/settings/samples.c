/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of every directive, and the cases made of samples and the daemon's tables. */
#include "settings/samples.h"
#include "features/features.h"
#include "settings/sample_checks.h"

#include "base/cpu_mask.h"
#include "protocols/table.h"
#include "support/test.h"

#include <limits.h>
#include <string.h>

#define NUMBER(is) .field = FIELD_NUMBER, .number = (is)
#define PATH(is, initially) .field = FIELD_TEXT, .text = (is), .initial_text = (initially)
#define REDEFINED "load balancing method redefined"
#define CHECK(function) .check = (function)

/* A directive that may be repeated has `again`. */
static const struct sample samples[] = {
    { "control", "unix:run/a.sock", CHECK(check_control) },
    { "control_read", "unix:run/r.sock group=4", CHECK(check_control_read) },
    { "daemon", "off", NUMBER(0) },
    { "debug_modules", "on", NUMBER(1) },
    { "debug_points", "abort", NUMBER(LOG_POINT_ABORT) },
    { "env", "A=1", CHECK(check_env), .again = "B" },
    { "env_substitution", "on", NUMBER(1) },
    { "error_log", "error.log notice", CHECK(check_error_log), .again = "stderr" },
    { "error_log_rate_limit", "burst=7 interval=30s", CHECK(check_rate_limit) },
    { "events", "{ }", .again = NULL },
    { "include", "other", CHECK(check_included), .again = "other" },
    { "load_module", "plain_a.so", CHECK(check_module), .again = "plain_b.so" },
    { "master_process", "off", NUMBER(0) },
    { "max_draining_workers", "3", NUMBER(3) },
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
    { "access_log", "off", CHECK(check_access_log), .again = "off" },
    { "aio", "threads", NUMBER(FB_AIO_THREADS) },
    { "allow", "10.0.0.0/8", CHECK(check_allow), .again = "10.0.0.0/8" },
    { "deny", "10.0.0.0/8", CHECK(check_deny), .again = "unix:" },
    { "directio_alignment", "512", NUMBER(512) },
    { "first_byte_timeout", "5s", NUMBER(5000) },
    { "idle_timeout", "\"1m 30s\"", NUMBER(90000) },
    { "input_limit", "1m", NUMBER(1048576) },
    { "limit_conn_dry_run", "on", NUMBER(1) },
    { "limit_conn_log_level", "info", .field = FIELD_NUMBER, .number = 0, .initial = 3 },
    { "limit_conn_zone", "$remote_addr zone=a:32k", CHECK(check_limit_zone),
        .again = "$remote_addr zone=b:10m" },
    { "listen", "127.0.0.1:2", CHECK(check_listen), .again = "127.0.0.1:3" },
    { "log_format", "main escape=json '$remote_addr' ' ${status}'", CHECK(check_log_format),
        .again = "other text" },
    { "geo", "$mapped { ranges; 192.0.2.0-192.0.2.7 a; }", CHECK(check_map),
        .again = "$pid $mapped { ::1 a; }" },
    { "map", "$remote_addr $mapped { ::1 v6; default other; }", CHECK(check_map),
        .again = "$pid $mapped { }" },
    { "map_hash_bucket_size", "64", CHECK(check_nothing) },
    { "map_hash_max_size", "2048", CHECK(check_nothing) },
    { "match", "redis { send PING\\r\\n; expect +PONG; }", CHECK(check_match), .again = "b { }" },
    { "open_log_file_cache", "max=9 inactive=20s min_uses=2", CHECK(check_log_cache) },
    { "output_limit", "off", NUMBER(INT64_MAX) },
    { "preread_buffer_size", "1k", NUMBER(1024) },
    { "preread_timeout", "500ms", NUMBER(500) },
    { "proxy_protocol_timeout", "5s", NUMBER(5000) },
    { "proxy_session_drop", "on over=3s", CHECK(check_drop) },
    { "receive_min_rate", "1k grace=3s", CHECK(check_min_rate) },
    { "session_lifetime", "1m jitter=7s grace=3s", CHECK(check_lifetime) },
    { "receive_timeout", "90s", NUMBER(90000) },
#if HAVE_CARES
    { "resolver", "127.0.0.53 [::1]:5353 valid=30s ipv6=off", CHECK(check_resolver) },
#endif
    { "resolver_timeout", "3s", NUMBER(3000) },
    { "server_name", "a", CHECK(check_server), .again = "b" },
    { "server", "127.0.0.1:81 weight=2 max_fails=0", CHECK(check_upstream_server),
        .again = "unix:/tmp/x", .at = CONTEXT_UPSTREAM },
    { "server", "{ listen 127.0.0.1:2; }", CHECK(check_server),
        .again = "{ listen 127.0.0.1:3; }" },
    { "set", "$place here", CHECK(check_variable), .again = "$place there" },
    { "split_clients", "$pid $mapped { 0.5% a; * b; }", CHECK(check_map),
        .again = "a $mapped { }" },
    { "set_real_ip_from", "192.0.2.0/24", CHECK(check_trusted), .again = "unix:" },
#if HAVE_OPENSSL
    { "ssl_alpn", "h2 http/1.1", CHECK(check_nothing) },
    { "ssl_alpn_challenge_directory", "challenges", CHECK(check_nothing) },
    { "ssl_certificate_cache", "max=9 valid=1m", CHECK(check_nothing) },
    { "ssl_certificate_key", "a.key", CHECK(check_nothing), .again = "b.key" },
    { "ssl_ciphers", "HIGH:!aNULL:!MD5", CHECK(check_nothing) },
    { "ssl_client_certificate", "ca.pem", CHECK(check_nothing) },
    { "ssl_conf_command", "Options PrioritizeChaCha", CHECK(check_nothing),
        .again = "Groups P-256" },
    { "ssl_crl", "crl.pem", CHECK(check_nothing) },
    { "ssl_dhparam", "dh.pem", CHECK(check_nothing) },
    { "ssl_ecdh_curve", "X25519:P-256", CHECK(check_nothing) },
    { "ssl_handshake_timeout", "5s", NUMBER(5000) },
    { "ssl_key_log", "keys.log", CHECK(check_nothing) },
    { "ssl_password_file", "passwords", CHECK(check_nothing) },
    { "ssl_prefer_server_ciphers", "on", NUMBER(1) },
    { "ssl_protocols", "TLSv1.3", NUMBER(2), .again = "TLSv1.3" },
    { "ssl_reject_handshake", "on", NUMBER(1) },
    { "ssl_session_cache", "shared:SSL:10m", CHECK(check_nothing) },
    { "ssl_session_ticket_key", "ticket.key", CHECK(check_nothing), .again = "old.key" },
    { "ssl_session_tickets", "off", NUMBER(0) },
    { "ssl_session_timeout", "1h", NUMBER(3600000) },
    { "ssl_stapling", "on", NUMBER(1) },
    { "ssl_stapling_file", "ocsp.der", CHECK(check_nothing), .again = "other.der" },
    { "ssl_stapling_verify", "on", CHECK(check_nothing) },
    { "ssl_trusted_certificate", "ca.pem", CHECK(check_nothing) },
    { "ssl_verify_client", "optional_no_ca", NUMBER(3) },
    { "ssl_verify_depth", "3", NUMBER(3) },
#endif
    { "ssl_preread", "on", NUMBER(1) },
    { "tcp_nodelay", "off", NUMBER(0) },
    { "upstream", "other { server 127.0.0.1:81; }", CHECK(check_upstream),
        .again = "Any { server 127.0.0.1:81; }" },
    { "variables_hash_bucket_size", "64", CHECK(check_nothing) },
    { "variables_hash_max_size", "1024", CHECK(check_nothing) },
#if HAVE_CARES
    { "resolver", "127.0.0.53 [::1]:5353 valid=30s ipv6=off", CHECK(check_upstream_resolver),
        .at = CONTEXT_UPSTREAM },
#endif
    { "hash", "$remote_addr consistent", CHECK(check_upstream_hash), .again = "$remote_port",
        .warning = REDEFINED },
    { "least_conn", "", CHECK(check_upstream_least_conn), .again = "", .warning = REDEFINED },
    { "least_time", "first_byte inflight", CHECK(check_upstream_least_time), .again = "connect",
        .warning = REDEFINED },
    { "random", "two least_time=last_byte", CHECK(check_upstream_random), .again = "",
        .warning = REDEFINED },
    { "proxy_session_drop", "on over=9s", CHECK(check_upstream_drop), .at = CONTEXT_UPSTREAM },
    { "queue", "7 timeout=3s", CHECK(check_upstream_queue) },
    { "resolver_timeout", "9s", CHECK(check_upstream_timeout), .at = CONTEXT_UPSTREAM },
    { "zone", "a 64k", CHECK(check_nothing) },
    { "daytime", "", CHECK(check_daytime) },
    { "discard", "", CHECK(check_discard) },
    { "echo", "", CHECK(check_echo) },
    { "directio", "4m", CHECK(check_directio) },
    { "file", "hello", CHECK(check_file) },
    { "health_check_timeout", "1s", CHECK(check_nothing) },
    { "pass", "127.0.0.1:$pid", CHECK(check_pass) },
    { "proxy_bind", "10.0.0.1 [::1]:7 transparent", CHECK(check_proxy_bind) },
    { "proxy_buffer_size", "8k", CHECK(check_proxy_buffer_size) },
    { "proxy_connect_timeout", "5s", CHECK(check_proxy_connect_timeout) },
    { "proxy_download_rate", "3m", CHECK(check_proxy_download_rate) },
    { "proxy_half_close", "on", CHECK(check_proxy_half_close) },
    { "proxy_next_upstream", "off", CHECK(check_proxy_next_upstream) },
    { "proxy_next_upstream_timeout", "9s", CHECK(check_proxy_next_upstream_timeout) },
    { "proxy_next_upstream_tries", "3", CHECK(check_proxy_next_upstream_tries) },
    { "proxy_pass", "127.0.0.1:2", CHECK(check_proxy_pass) },
    { "proxy_protocol", "on version=2", CHECK(check_proxy_protocol) },
    { "proxy_reset", "on", CHECK(check_proxy_reset) },
    { "proxy_socket_keepalive", "on", CHECK(check_proxy_socket_keepalive) },
#if HAVE_OPENSSL
    { "proxy_ssl", "on", CHECK(check_nothing) },
    { "proxy_ssl_alpn", "h2 http/1.1", CHECK(check_nothing) },
    { "proxy_ssl_certificate", "\"\"", CHECK(check_nothing) },
    { "proxy_ssl_certificate_cache", "max=9", CHECK(check_nothing) },
    { "proxy_ssl_certificate_key", "a.key", CHECK(check_nothing) },
    { "proxy_ssl_ciphers", "HIGH:!aNULL:!MD5", CHECK(check_nothing) },
    { "proxy_ssl_conf_command", "Options PrioritizeChaCha", CHECK(check_nothing),
        .again = "Groups P-256" },
    { "proxy_ssl_crl", "crl.pem", CHECK(check_nothing) },
    { "proxy_ssl_key_log", "keys.log", CHECK(check_nothing) },
    { "proxy_ssl_name", "$pid.test", CHECK(check_nothing) },
    { "proxy_ssl_password_file", "passwords", CHECK(check_nothing) },
    { "proxy_ssl_protocols", "TLSv1.3", CHECK(check_nothing), .again = "TLSv1.2" },
    { "proxy_ssl_server_name", "on", CHECK(check_nothing) },
    { "proxy_ssl_session_reuse", "off", CHECK(check_nothing) },
    { "proxy_ssl_trusted_certificate", "ca.pem", CHECK(check_nothing) },
    { "proxy_ssl_verify", "off", CHECK(check_nothing) },
    { "proxy_ssl_verify_depth", "3", CHECK(check_nothing) },
#endif
    { "proxy_timeout", "1m", CHECK(check_proxy_timeout) },
    { "proxy_upload_rate", "$pid", CHECK(check_proxy_upload_rate) },
    { "return", "\"hello\\n\"", CHECK(check_return) },
    { "status_page", "", CHECK(check_status_page) },
    { "stub_status", "", CHECK(check_stub_status) },
};

#define CASES_MAX (countof(samples) + 1)

static struct directive_case cases[CASES_MAX];

static const struct sample *find_sample(const char *name, unsigned at)
{
    const struct sample *found = NULL;

    for (size_t i = 0; i < countof(samples); i++)
        if (strcmp(samples[i].name, name) == 0 &&
            (samples[i].at == at || (samples[i].at == 0 && found == NULL)))
            found = &samples[i];
    ck_assert_msg(found != NULL, "\"%s\" has no sample in samples.c", name);
    return found;
}

/* The cases end at the first without a name. */
static struct directive_case *find_case(const char *name)
{
    struct directive_case *found = cases;

    while (found->name != NULL && strcmp(found->name, name) != 0)
        found++;
    return found;
}

static struct directive_case *add_case(const char *name, unsigned at)
{
    struct directive_case *added = cases;

    for (; added->name != NULL; added++)
        ck_assert_msg(strcmp(added->name, name) != 0 || !(added->at & at),
            "two rows of a context have \"%s\"", name);
    added->name = name;
    added->at = at;
    added->sample = find_sample(name, at);
    return added;
}

/* Whether the build refuses the directive, the argument stands in a different block, or another
 * directive is needed: then a separate test exists. */
static bool is_refused(const char *name)
{
    return (!HAVE_CARES && strcmp(name, "resolver") == 0) || strcmp(name, "limit_conn") == 0 ||
           strcmp(name, "limit_conn_rate") == 0 || strcmp(name, "health_check") == 0 ||
           strcmp(name, "ssl_certificate") == 0 || strcmp(name, "proxy_starttls") == 0;
}

static void add_table(const struct setting *table, enum field_of field_of, unsigned feature)
{
    for (; table->name != NULL; table++) {
        struct directive_case *added;

        if (is_refused(table->name))
            continue;
        if (strcmp(table->name, "error_log") == 0 && table->at != CONTEXT_MAIN) {
            find_case(table->name)->at |= table->at; /* two rows, of two tables */
            continue;
        }
        added = add_case(table->name, table->at);
        added->least = table->least;
        added->most = table->most;
        added->repeats = table->repeats;
        added->block = table->block;
        added->initial = table->initial;
        added->unset = table->unset;
        added->field_of = field_of;
        added->offset = table->offset;
        added->feature = feature;
    }
}

static void add_features(void)
{
    for (unsigned i = 0; i < FEATURES; i++)
        if (features_all[i]->rows != NULL)
            add_table(features_all[i]->rows, FIELD_OF_SERVER,
                features_all[i]->server_size > 0 ? 1 + i : 0);
}

static void add_mechanism_option(const struct mechanism_option *option)
{
    struct directive_case *added;

    if (option->name == NULL)
        return;
    added = add_case(option->name, CONTEXT_EVENTS);
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

/* Writes the protocol's handler directive, with the sample. */
static void write_handler(const fb_protocol *protocol, char text[64])
{
    for (unsigned i = 0; i < protocol->directive_n; i++) {
        const char *name = protocol->directives[i].name;

        if (protocol->directives[i].flags & FB_DIRECTIVE_HANDLER)
            snprintf(text, 64, "%s %s; ", name, find_sample(name, CONTEXT_SERVER)->value);
    }
}

/* Adds the directives of TLS to servers, which are a feature's rows, and the proxy's names. */
static void add_tls_rows(const fb_protocol *protocol)
{
    const struct feature_tls *tls = features_all[FEATURE_SSL]->tls;

    if (tls == NULL)
        return;
    for (const struct setting *row = tls->rows; row->name != NULL; row++) {
        struct directive_case *added = add_case(row->name, row->at);

        added->least = row->least;
        added->most = row->most;
        added->repeats = row->repeats;
        added->initial = row->initial;
        added->unset = row->unset;
        write_handler(protocol, added->handler);
    }
}

static void add_protocol(const fb_protocol *protocol)
{
    for (unsigned i = 0; i < protocol->directive_n; i++) {
        const fb_directive *directive = &protocol->directives[i];
        bool is_handler = (directive->flags & FB_DIRECTIVE_HANDLER) != 0;
        unsigned at = is_handler ? CONTEXT_SERVER : CONTEXT_STREAM | CONTEXT_SERVER;
        struct directive_case *added;

        if (is_refused(directive->name))
            continue;
        if (directive->value == FB_VALUE_TLS) {
            add_tls_rows(protocol);
            continue;
        }
        added = add_case(directive->name, at);
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
    add_table(core_table, FIELD_OF_CORE, 0);
    add_table(events_table, FIELD_OF_EVENTS, 0);
    add_table(stream_rows, FIELD_OF_SERVER, 0);
    add_features();
    add_table(upstream_table, FIELD_OF_UPSTREAM, 0);
    add_mechanism_options();
    for (int i = 0; protocols_builtin[i] != NULL; i++)
        add_protocol(protocols_builtin[i]);
    for (; cases[n].name != NULL; n++)
        for (const struct directive_case *other = cases; other->name != NULL; other++)
            if (strcmp(other->name, cases[n].name) == 0)
                cases[n].anywhere |= other->at;
    ck_assert_msg(n == countof(samples), "samples.c has samples of directives that there are not");
    return cases;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the values of the samples were set. */
#include "settings/sample_checks.h"

#include "features/access_log/access_log.h"
#include "features/features.h"
#include "features/health/health.h"
#include "features/lifetime/lifetime.h"
#include "features/limit_conn/limit_conn.h"
#include "features/proxy_protocol/proxy_protocol.h"
#include "features/set/set.h"
#include "text/variable.h"

#include "base/cpu_mask.h"
#include "features/access/access.h"
#include "features/limit_conn/limit_conn.h"
#include "support/test.h"
#include "text/template.h"
#include "upstream/balancer.h"

#include <arpa/inet.h>
#include <limits.h>
#include <string.h>

static const struct server *server_of(const struct cycle *cycle)
{
    ck_assert(!STAILQ_EMPTY(&cycle->stream.servers));
    return STAILQ_FIRST(&cycle->stream.servers);
}

void check_env(const struct cycle *cycle)
{
    ck_assert_uint_eq(cycle->core.env_n, 1);
    ck_assert_str_eq(cycle->core.env[0], "A=1");
}

void check_control(const struct cycle *cycle)
{
    ck_assert_str_eq(strrchr(cycle->core.control.path, '/'), "/a.sock");
}

void check_control_read(const struct cycle *cycle)
{
    ck_assert_str_eq(strrchr(cycle->core.control_read.path, '/'), "/r.sock");
    ck_assert_uint_eq(cycle->core.control_read.rights.mode, 0660);
    ck_assert_uint_eq(cycle->core.control_read.rights.group, 4);
}

void check_error_log(const struct cycle *cycle)
{
    bool is_servers = cycle->core.other_log_n > 0;
    const struct log_target *target = is_servers ? cycle->core.other_logs[0] : cycle->core.logs;

    ck_assert_uint_eq(cycle->core.log_n, 1);
    ck_assert_uint_eq(cycle->core.other_log_n, is_servers);
    ck_assert_str_eq(strrchr(target->path, '/'), "/error.log");
    ck_assert_int_eq(target->level, LEVEL_NOTICE);
    ck_assert_int_eq(target->fd, -1);
}

void check_rate_limit(const struct cycle *cycle)
{
    ck_assert_int_eq(cycle->core.log_burst, 7);
    ck_assert_int_eq(cycle->core.log_interval, 30000);
}

void check_thread_pool(const struct cycle *cycle)
{
    ck_assert_int_eq(cycle->core.pool.threads, 3);
}

void check_affinity(const struct cycle *cycle)
{
    ck_assert(!cycle->core.cpu_auto);
    ck_assert_uint_eq(cycle->core.cpu_n, 2);
    ck_assert_uint_eq(cpu_mask_count(&cycle->core.cpus[0]), 1);
    ck_assert(cpu_mask_has(&cycle->core.cpus[0], 0));
    ck_assert_uint_eq(cpu_mask_count(&cycle->core.cpus[1]), 2);
    ck_assert(cpu_mask_has(&cycle->core.cpus[1], 1) && cpu_mask_has(&cycle->core.cpus[1], 2));
}

void check_debug(const struct cycle *cycle)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000207) };

    ck_assert_uint_eq(cycle->events.debug_n, 1);
    ck_assert(address_block_matches(&cycle->events.debug[0], (struct sockaddr *)&in));
}

void check_use(const struct cycle *cycle)
{
    ck_assert_ptr_eq(cycle->events.mechanism, &mechanism_poll);
}

/* An option of one event mechanism is 16, and no further option. */
void check_option(const struct cycle *cycle)
{
    unsigned n = 0;

    for (int i = 0; mechanism_table[i] != NULL; i++)
        for (int k = 0; k < MECHANISM_OPTIONS; k++)
            n += cycle->events.all_values[i].of[k] == 16;
    ck_assert_uint_eq(n, 1);
}

void check_included(const struct cycle *cycle)
{
    const struct conf_file *file = STAILQ_LAST(&cycle->source.files, conf_file, link);

    ck_assert_str_eq(strrchr(file->name, '/'), "/other");
}

void check_module(const struct cycle *cycle)
{
    const struct module *module = SLIST_FIRST(&cycle->modules);

    ck_assert_ptr_nonnull(module);
    ck_assert_str_eq(module->protocol->name, "plain_a");
}

void check_listen(const struct cycle *cycle)
{
    ck_assert_str_eq(STAILQ_FIRST(&cycle->stream.listeners.list)->text, "127.0.0.1:2");
}

void check_limit_zone(const struct cycle *cycle)
{
    const struct limit_conf *conf = cycle->stream.features[FEATURE_LIMIT_CONN];

    ck_assert_ptr_nonnull(conf->zones);
    ck_assert_str_eq(conf->zones->name, "a");
    ck_assert_ptr_nonnull(zones_find(&cycle->zones, "limit_conn:a"));
}

void check_access_log(const struct cycle *cycle)
{
    const struct access_log_values *values = server_feature(server_of(cycle), FEATURE_ACCESS_LOG);

    ck_assert(values->logs.off);
    ck_assert_ptr_null(server_of(cycle)->after);
}

void check_log_format(const struct cycle *cycle)
{
    const struct access_log_conf *conf = cycle->stream.features[FEATURE_ACCESS_LOG];
    const struct line_format *format = RB_ROOT(&conf->formats);

    ck_assert_ptr_nonnull(format);
    ck_assert_str_eq(format->name, "main");
    ck_assert_int_eq(format->escape, LOG_ESCAPE_JSON);
    ck_assert_uint_eq(format->part_n, 3);
}

void check_log_cache(const struct cycle *cycle)
{
    const struct access_log_values *values = server_feature(server_of(cycle), FEATURE_ACCESS_LOG);
    const struct access_cache_setting *cache = values->cache;

    ck_assert_int_eq(cache->max, 9);
    ck_assert_int_eq(cache->inactive, 20000);
    ck_assert_int_eq(cache->min_uses, 2);
    ck_assert_int_eq(cache->valid, 60000);
}

void check_trusted(const struct cycle *cycle)
{
    const struct proxy_protocol_values *values =
        server_feature(server_of(cycle), FEATURE_PROXY_PROTOCOL);
    const struct trusted_setting *trusted = &values->trusted;

    ck_assert_int_eq(trusted->n, 1);
    ck_assert_uint_eq(trusted->blocks[0].bits, 24);
}

#if HAVE_CARES
void check_resolver(const struct cycle *cycle)
{
    const struct names_setting *resolver = server_of(cycle)->settings.resolver;

    ck_assert_str_eq(resolver->servers, "127.0.0.53:53,[::1]:5353");
    ck_assert_int_eq(resolver->valid, 30000);
    ck_assert(resolver->ipv4 && !resolver->ipv6);
}
#endif

/* Finds the client allowed or not by the rules of the first server. */
static void check_access(const struct cycle *cycle, bool allowed)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000007) };
    const struct phase_handler *handler = server_of(cycle)->before;

    ck_assert_ptr_nonnull(handler);
    ck_assert_int_eq(handler->phase, PHASE_ACCESS);
    ck_assert_int_eq(access_allows(handler->arg, (struct sockaddr *)&in), allowed);
}

void check_allow(const struct cycle *cycle)
{
    check_access(cycle, true);
}

void check_deny(const struct cycle *cycle)
{
    check_access(cycle, false);
}

void check_server(const struct cycle *cycle)
{
    ck_assert_ptr_nonnull(server_of(cycle));
}

void check_pass(const struct cycle *cycle)
{
    ck_assert_str_eq(server_of(cycle)->protocol->name, "pass");
    ck_assert(server_of(cycle)->passes);
}

void check_return(const struct cycle *cycle)
{
    const fb_template *const *template = server_of(cycle)->protocol_conf;
    struct value text;

    ck_assert_str_eq(server_of(cycle)->protocol->name, "return");
    ck_assert(template_is_constant((const struct template *)*template, &text));
    ck_assert_str_eq(text.p, "hello\n");
}

/* The protocol's configuration, as set by the directives. */
struct file_conf {
    const char *path;
    int64_t directio;
};

void check_file(const struct cycle *cycle)
{
    const struct file_conf *conf = server_of(cycle)->protocol_conf;

    ck_assert_str_eq(server_of(cycle)->protocol->name, "file");
    ck_assert_str_eq(strrchr(conf->path, '/'), "/hello");
}

/* In `stream {}`, without a protocol's server, nothing is set. */
void check_directio(const struct cycle *cycle)
{
    const struct file_conf *conf = server_of(cycle)->protocol_conf;

    if (server_of(cycle)->protocol != NULL)
        ck_assert_int_eq(conf->directio, 4 * 1024 * 1024);
}

/* A protocol with a directive without value is known by name. */
#define CHECK_PROTOCOL(protocol_name)                                                              \
    void check_##protocol_name(const struct cycle *cycle)                                          \
    {                                                                                              \
        ck_assert_str_eq(server_of(cycle)->protocol->name, #protocol_name);                        \
    }
CHECK_PROTOCOL(daytime)
CHECK_PROTOCOL(discard)
CHECK_PROTOCOL(echo)
CHECK_PROTOCOL(status_page)
CHECK_PROTOCOL(stub_status)

/* $mapped is defined. */
void check_map(const struct cycle *cycle)
{
    struct variables *variables = cycle->stream.variables;
    struct variable *variable = variables_next(variables, NULL);

    while (variable != NULL && strcmp(variable->name, "mapped") != 0)
        variable = variables_next(variables, variable);
    ck_assert_ptr_nonnull(variable);
    ck_assert_ptr_nonnull(variable->get);
}

void check_match(const struct cycle *cycle)
{
    const struct health_conf *conf = cycle->stream.features[FEATURE_HEALTH];
    const struct match *match = STAILQ_FIRST(&conf->matches);

    ck_assert_str_eq(match->name, "redis");
    ck_assert_uint_eq(match->send.n, strlen("PING\r\n"));
    ck_assert_mem_eq(match->send.p, "PING\r\n", match->send.n);
    ck_assert_mem_eq(match->expect.p, "+PONG", match->expect.n);
}

/* Checks nothing, for a directive without an effect. */
void check_nothing(const struct cycle *cycle)
{
    (void)cycle;
}

void check_variable(const struct cycle *cycle)
{
    const struct set_commands *commands = server_feature(server_of(cycle), FEATURE_SET);
    const struct set_command *first = commands->first;

    ck_assert_ptr_nonnull(first);
    ck_assert_str_eq(first->variable->name, "place");
}

void check_min_rate(const struct cycle *cycle)
{
    const struct lifetime_values *values = server_feature(server_of(cycle), FEATURE_LIFETIME);

    ck_assert_int_eq(values->receive_min_rate.bytes, 1024);
    ck_assert_int_eq(values->receive_min_rate.grace, 3000);
}

void check_drop(const struct cycle *cycle)
{
    ck_assert_int_eq(server_of(cycle)->settings.drop.way, UPSTREAM_DROP_ON);
    ck_assert_int_eq(server_of(cycle)->settings.drop.over, 3000);
}

void check_lifetime(const struct cycle *cycle)
{
    const struct lifetime_values *values = server_feature(server_of(cycle), FEATURE_LIFETIME);

    ck_assert_int_eq(values->lifetime.time, 60000);
    ck_assert_int_eq(values->lifetime.jitter, 7000);
    ck_assert_int_eq(values->lifetime.grace, 3000);
    ck_assert_ptr_nonnull(server_of(cycle)->before);
}

static const struct upstream *upstream_of(const struct cycle *cycle)
{
    ck_assert(!STAILQ_EMPTY(&cycle->stream.upstreams));
    return STAILQ_FIRST(&cycle->stream.upstreams);
}

void check_upstream(const struct cycle *cycle)
{
    ck_assert_str_eq(upstream_of(cycle)->name, "other");
    ck_assert_uint_eq(upstream_of(cycle)->server_n, 1);
}

void check_upstream_server(const struct cycle *cycle)
{
    const struct upstream_server *server = STAILQ_FIRST(&upstream_of(cycle)->servers);

    ck_assert_str_eq(server->name, "127.0.0.1:81");
    ck_assert_str_eq(server->target->text, "127.0.0.1:81");
    ck_assert_uint_eq(server->weight, 2);
    ck_assert_uint_eq(server->max_fails, 0);
    ck_assert_int_eq(server->fail_timeout, 10000);
}

void check_upstream_drop(const struct cycle *cycle)
{
    ck_assert_int_eq(upstream_of(cycle)->drop.way, UPSTREAM_DROP_ON);
    ck_assert_int_eq(upstream_of(cycle)->drop.over, 9000);
}

void check_upstream_queue(const struct cycle *cycle)
{
    ck_assert_uint_eq(upstream_of(cycle)->queue, 7);
    ck_assert_int_eq(upstream_of(cycle)->queue_timeout, 3000);
}

void check_upstream_resolver(const struct cycle *cycle)
{
    ck_assert_str_eq(upstream_of(cycle)->resolver->servers, "127.0.0.53:53,[::1]:5353");
    ck_assert_ptr_eq(cycle->stream.resolver, &cycle->stream.system);
}

void check_upstream_timeout(const struct cycle *cycle)
{
    ck_assert_int_eq(upstream_of(cycle)->resolver_timeout, 9000);
    ck_assert_int_eq(cycle->stream.resolver_timeout, 30000);
}

static const struct upstream_balance *balance_of(const struct cycle *cycle, const char *name)
{
    const struct upstream_balance *balance = &upstream_of(cycle)->balance;

    ck_assert_ptr_nonnull(balance->balancer);
    ck_assert_str_eq(balance->balancer->name, name);
    return balance;
}

void check_upstream_hash(const struct cycle *cycle)
{
    const struct upstream_balance *balance = balance_of(cycle, "hash");

    ck_assert_ptr_nonnull(balance->key);
    ck_assert_uint_eq(balance->key->part_n, 1);
    ck_assert(balance->consistent);
}

void check_upstream_least_conn(const struct cycle *cycle)
{
    balance_of(cycle, "least_conn");
}

void check_upstream_least_time(const struct cycle *cycle)
{
    const struct upstream_balance *balance = balance_of(cycle, "least_time");

    ck_assert_int_eq(balance->time, UPSTREAM_TIME_FIRST_BYTE);
    ck_assert(balance->inflight);
}

void check_upstream_random(const struct cycle *cycle)
{
    const struct upstream_balance *balance = balance_of(cycle, "random");

    ck_assert_int_eq(balance->time, UPSTREAM_TIME_LAST_BYTE);
    ck_assert(balance->two && balance->two_by_time);
}

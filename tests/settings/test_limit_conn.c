/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of limits: refusals, as in nginx, and the rules of a server. */
#include "settings/loading.h"
#include "support/test.h"

#include "features/features.h"
#include "features/limit_conn/limit_conn.h"

#include <stdio.h>
#include <string.h>

#define STREAM(text) "events { } stream { " text " }"
#define ZONE "limit_conn_zone $remote_addr zone=a:1m; "

/* Refused directives, with the messages without the place. */
static const struct {
    const char *text, *message;
} wrong[] = {
    { "limit_conn_zone k zone=a;",
        "invalid value \"zone=a\" in \"limit_conn_zone\" directive: expected zone=name:size, such "
        "as zone=addr:10m" },
    { "limit_conn_zone k zone=:1m;",
        "invalid value \"zone=:1m\" in \"limit_conn_zone\" directive: expected zone=name:size, "
        "such as zone=addr:10m" },
    { "limit_conn_zone zone=a:1m k;",
        "invalid value \"k\" in \"limit_conn_zone\" directive: expected zone=name:size, such as "
        "zone=addr:10m" },
    { "limit_conn_zone k zone=a:x;",
        "invalid value \"zone=a:x\" in \"limit_conn_zone\" directive: invalid zone size: expected "
        "a size such as 32k or 10m" },
    { "limit_conn_zone k zone=a:31k;",
        "invalid value \"zone=a:31k\" in \"limit_conn_zone\" directive: zone is too small: a zone "
        "has at least 32k" },
    { ZONE "limit_conn_zone k zone=a:1m;",
        "invalid value \"zone=a:1m\" in \"limit_conn_zone\" directive: limit_conn_zone \"a\" is "
        "already bound to key \"$remote_addr\"" },
    { ZONE "limit_conn_zone $remote_addr zone=a:2m;",
        "invalid value \"zone=a:2m\" in \"limit_conn_zone\" directive: the size 2097152 of shared "
        "memory zone \"a\" conflicts with already declared size 1048576" },
    { "limit_conn a 1;", "zero size shared memory zone \"a\": there is no \"limit_conn_zone\" with "
                         "\"zone=a:size\"" },
    { ZONE "limit_conn a 0;",
        "invalid value \"0\" in \"limit_conn\" directive: the limit must be between 1 and 65535 "
        "connections" },
    { ZONE "limit_conn a x;",
        "invalid value \"x\" in \"limit_conn\" directive: expected a number of connections" },
    { ZONE "limit_conn a 1; limit_conn a 2;",
        "invalid value \"a\" in \"limit_conn\" directive: \"limit_conn\" directive is duplicate: "
        "the block already has a directive of the zone" },
    { ZONE "limit_conn_rate a 10;", "invalid value \"10\" in \"limit_conn_rate\" directive: "
                                    "expected a rate such as 10r/s or 30r/m" },
    { ZONE "limit_conn_rate a 0r/s;", "invalid value \"0r/s\" in \"limit_conn_rate\" directive: "
                                      "expected a rate such as 10r/s or 30r/m" },
    { ZONE "limit_conn_rate a 1r/s 5;", "invalid value \"5\" in \"limit_conn_rate\" directive: "
                                        "expected burst=number, 65535 at most" },
    { ZONE "limit_conn_rate a 1r/s burst=-1;", "invalid value \"burst=-1\" in \"limit_conn_rate\" "
                                               "directive: expected burst=number, 65535 at most" },
    { "limit_conn_zone $nosuch zone=a:1m;", "unknown \"nosuch\" variable" },
};

START_TEST(wrong_limits_are_refused)
{
    struct loading loading;
    char text[512];
    size_t n;

    loading_begin(&loading);
    for (size_t i = 0; i < countof(wrong); i++) {
        snprintf(text, sizeof(text), STREAM("%s"), wrong[i].text);
        load(&loading, text);
        n = strlen(wrong[i].message);
        ck_assert_ptr_null(loading.cycle);
        ck_assert_msg(strncmp(loading.report, wrong[i].message, n) == 0 &&
                          strchr(loading.report, '\n') == strrchr(loading.report, '\n'),
            "%s: %s", wrong[i].text, loading.report);
    }
    loading_end(&loading);
}
END_TEST

static const struct server *server_at(const struct loading *loading, unsigned number)
{
    const struct server *server = STAILQ_FIRST(&loading->cycle->stream.servers);

    while (number-- > 0)
        server = STAILQ_NEXT(server, link);
    return server;
}

static unsigned count_rules(const struct limit_rule *rule)
{
    unsigned n = 0;

    for (; rule != NULL; rule = rule->next)
        n++;
    return n;
}

static const struct limit_values *values_at(const struct loading *loading, unsigned i)
{
    return server_feature(server_at(loading, i), FEATURE_LIMIT_CONN);
}

START_TEST(servers_inherit_what_they_do_not_have)
{
    struct loading loading;
    const struct limit_rule *rule;

    loading_begin(&loading);
    accept_text(&loading,
        STREAM("limit_conn a 3; limit_conn b 5; limit_conn_rate b 30r/m burst=2;"
               "limit_conn_zone $remote_addr zone=a:1m; limit_conn_zone \"\" zone=b:32k;"
               "server { listen 127.0.0.1:1; echo; limit_conn_dry_run on; }"
               "server { listen 127.0.0.1:2; echo; limit_conn b 7; limit_conn_rate a 1000r/s; }"),
        "");
    ck_assert_uint_eq(count_rules(values_at(&loading, 0)->conns), 2);
    rule = values_at(&loading, 0)->rates;
    ck_assert_uint_eq(count_rules(rule), 1);
    ck_assert_uint_eq(rule->rate.interval_ns, UINT64_C(2000000000));
    ck_assert_uint_eq(rule->rate.burst_ns, UINT64_C(4000000000));
    ck_assert_int_eq(values_at(&loading, 0)->dry_run, 1);
    ck_assert_ptr_nonnull(server_at(&loading, 0)->before);
    rule = values_at(&loading, 1)->conns;
    ck_assert_uint_eq(count_rules(rule), 1);
    ck_assert_uint_eq(rule->most, 7);
    ck_assert_str_eq(rule->zone->name, "b");
    ck_assert_uint_eq(values_at(&loading, 1)->rates->rate.interval_ns, 1000000);
    loading_end(&loading);
}
END_TEST

#define EMPTY                                                                                      \
    "sessions are counted before the ClientHello is read: $ssl_preread_server_name in the key "    \
    "of zone \"a\" is empty then"
#define CHOSEN                                                                                     \
    "clients choose $proxy_protocol_addr in the key of zone \"a\" themselves, unless all but "     \
    "proxies are kept away: name the proxies by \"set_real_ip_from\", and count by $remote_addr"

/* Keys that limit less than intended, with the warnings. */
static const struct {
    const char *key, *message;
} suspicious[] = {
    { "limit_conn_zone $ssl_preread_server_name zone=a:1m;", EMPTY },
    { "limit_conn_zone x$remote_addr$ssl_preread_server_name zone=a:1m;", EMPTY },
    { "limit_conn_zone $name zone=a:1m; map $ssl_preread_server_name $name { x y; }", EMPTY },
    { "map $name $name { x $name; } limit_conn_zone $name zone=a:1m;", NULL },
    { "limit_conn_zone $proxy_protocol_addr zone=a:1m;", CHOSEN },
    { "limit_conn_zone $remote_addr zone=a:1m;", NULL },
};

START_TEST(suspicious_keys_are_warned_of)
{
    struct loading loading;
    char text[512], expected[512];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(suspicious); i++) {
        const char *key = suspicious[i].key, *message = suspicious[i].message;

        snprintf(text, sizeof(text),
            STREAM("%s server { listen 127.0.0.1:1; ssl_preread on; echo; }"), key);
        accept_text(&loading, text, ""); /* the zone counts no sessions */
        snprintf(text, sizeof(text),
            STREAM("%s\nserver { listen 127.0.0.1:1; limit_conn a 1; ssl_preread on; echo; }"),
            key);
        snprintf(expected, sizeof(expected), "warning: %s in /main:2:41\n", message);
        accept_text(&loading, text, message != NULL ? expected : "");
    }
    loading_end(&loading);
}
END_TEST

START_TEST(a_server_without_limits_has_no_phase)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading, STREAM(ZONE "server { listen 127.0.0.1:1; echo; }"), "");
    ck_assert_ptr_null(server_at(&loading, 0)->before);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, wrong_limits_are_refused);
    tcase_add_test(tcase, servers_inherit_what_they_do_not_have);
    tcase_add_test(tcase, suspicious_keys_are_warned_of);
    tcase_add_test(tcase, a_server_without_limits_has_no_phase);
}

TEST_MAIN("limit_conn", add_tests)

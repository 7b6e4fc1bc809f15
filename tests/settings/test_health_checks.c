/* SPDX-License-Identifier: BSD-2-Clause */
/* Health checks in the configuration, as declared by a protocol: values, merged equal checks, the
 * workers' needs, and mistakes. */
#include "settings/loading.h"
#include "support/test.h"
#include "upstream/health.h"

#include <stddef.h>
#include <string.h>

/* The protocol's `lead GROUP` and `check PARAMETER ...` of a server. */
struct checker_conf {
    const fb_upstream *upstream;
    const char *const *args;
    uint32_t arg_n;
    const fb_health_check *check;
};

/* The timeout given to a check by the protocol. */
static uint64_t checker_timeout = 700;

struct checker_args {
    const char *const *args;
    uint32_t arg_n;
};

static int set_lead(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_upstream **upstream = value;

    (void)n;
    *upstream = fb_conf_upstream(conf, "lead", args[0]);
    return *upstream != NULL ? 0 : -1;
}

static int set_check(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    struct checker_args *check = value;

    (void)conf;
    check->args = args;
    check->arg_n = n;
    return 0;
}

static int checker_done(fb_conf *conf, void *own, const void *parent)
{
    struct checker_conf *checker = own;
    const fb_health_options options = { .size = sizeof(options),
        .args = checker->args,
        .arg_n = checker->arg_n,
        .timeout = checker_timeout };

    (void)parent;
    checker->check = fb_conf_health_check(conf, "check", checker->upstream, &options);
    return checker->check != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "lead",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .offset = offsetof(struct checker_conf, upstream),
        .room = sizeof(const fb_upstream *),
        .set = set_lead,
        .args_least = 1,
        .args_most = 1 },
    { .name = "check",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct checker_conf, args),
        .room = sizeof(struct checker_args),
        .set = set_check,
        .args_most = 16 },
};
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol checker = {
    FB_PROTOCOL_HEADER,
    .name = "checker",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(struct checker_conf),
    .ops = &ops,
    .conf_done = checker_done,
};
static const fb_protocol *const protocols[] = { &checker, NULL };

static struct loading loading;

static void setup(void)
{
    loading_begin(&loading);
    loading.options.protocols = protocols;
}

static void teardown(void)
{
    loading_end(&loading);
}

/* The group follows the servers using the group. */
#define GROUP " upstream u { zone z 128k; server 127.0.0.1:1; server unix:/s; }"

static void load_checks(const char *servers)
{
    char text[2048];

    snprintf(
        text, sizeof(text), "events { } stream { %s match m { } match n { }" GROUP " }", servers);
    accept_text(&loading, text, "");
}

static const struct upstream_check *check_of(unsigned server)
{
    const struct checker_conf *conf = loading_server(&loading, server)->protocol_conf;

    ck_assert_ptr_nonnull(conf->check->check);
    ck_assert_str_eq(conf->check->upstream->name, "u");
    return conf->check->check;
}

/* The column is the position of `word` in the text. */
static void refuse(const char *stream, const char *word, const char *message)
{
    char text[1024], expected[1024];

    snprintf(text, sizeof(text), "events { } stream { %s }", stream);
    snprintf(expected, sizeof(expected), "%s in /main:1:%u\n", message,
        (unsigned)(strstr(text, word) - text) + 1);
    refuse_text(&loading, text, expected);
}

static void refuse_value(const char *value, const char *why)
{
    char stream[256], message[512];

    snprintf(stream, sizeof(stream), "server { listen 80; lead u; check %s; }" GROUP, value);
    snprintf(
        message, sizeof(message), "invalid value \"%s\" in \"check\" directive: %s", value, why);
    refuse(stream, "check", message);
}

START_TEST(a_check_has_nginx_s_defaults)
{
    const struct upstream_check *check;

    load_checks("server { listen 80; lead u; check; }");
    check = check_of(0);
    ck_assert_int_eq(check->interval, 5000);
    ck_assert_int_eq(check->jitter, 0);
    ck_assert_int_eq(check->timeout, 700);
    ck_assert_uint_eq(check->fails, 1);
    ck_assert_uint_eq(check->passes, 1);
    ck_assert_uint_eq(check->port, 0);
    ck_assert(!check->mandatory && !check->persistent);
    ck_assert_ptr_null(check->match);
}
END_TEST

START_TEST(a_time_of_none_is_the_default)
{
    checker_timeout = 0;
    load_checks("server { listen 1; lead u; check; }");
    checker_timeout = 700;
    ck_assert_int_eq(check_of(0)->timeout, 5000);
}
END_TEST

START_TEST(a_check_has_what_is_written)
{
    const struct upstream_check *check;
    const struct needs_port *port;
    bool needed = false;

    load_checks("server { listen 80; lead u; check interval=100ms jitter=1s fails=3 passes=2 "
                "mandatory persistent match=n port=8080; }");
    check = check_of(0);
    ck_assert_int_eq(check->interval, 100);
    ck_assert_int_eq(check->jitter, 1000);
    ck_assert_uint_eq(check->fails, 3);
    ck_assert_uint_eq(check->passes, 2);
    ck_assert_uint_eq(check->port, 8080);
    ck_assert(check->mandatory && check->persistent);
    ck_assert_str_eq(check->match_name, "n");
    ck_assert_ptr_nonnull(check->match);
    STAILQ_FOREACH (port, &loading.cycle->needs.ports, link)
        needed = needed || port->port == 8080;
    ck_assert(needed);
}
END_TEST

START_TEST(equal_checks_of_a_group_are_one)
{
    load_checks("server { listen 80; lead u; check; } server { listen 81; lead u; check match=m; }"
                "server { listen 82; lead u; check interval=5s; }");
    ck_assert_ptr_eq(check_of(0), check_of(2));
    ck_assert_ptr_ne(check_of(0), check_of(1));
    ck_assert_uint_eq(check_of(0)->index, 0);
    ck_assert_uint_eq(check_of(1)->index, 1);
    ck_assert_ptr_null(check_of(1)->next);
}
END_TEST

START_TEST(a_value_has_a_form)
{
    refuse_value("interval=0", "the value is too small or too large");
    refuse_value("interval=x", "expected a value of the parameter's form");
    refuse_value("jitter=-1", "expected a value of the parameter's form");
    refuse_value("fails=0", "the value is too small or too large");
    refuse_value("passes=", "expected a value of the parameter's form");
    refuse_value("port=65536", "the value is too small or too large");
    refuse_value("udp", "servers of datagrams are not served");
    refuse_value("rises=2", "expected interval=, jitter=, fails=, passes=, port=, match=, "
                            "\"mandatory\" or \"persistent\"");
    refuse("server { listen 80; lead u; check persistent; }" GROUP, "check",
        "\"persistent\" in \"check\" directive needs \"mandatory\"");
}
END_TEST

START_TEST(a_check_needs_a_group_with_a_zone)
{
    refuse("server { listen 80; lead 127.0.0.1:1; check; }", "check",
        "\"check\" needs a server given by the name of an \"upstream\" block");
    refuse("server { listen 80; lead $remote_addr; check; }", "check",
        "\"check\" needs a server given by the name of an \"upstream\" block");
    refuse("server { listen 80; lead u; check; } upstream u { server 127.0.0.1:1; }", "check",
        "\"check\" needs shared memory: upstream \"u\" has no \"zone\"");
    refuse("server { listen 80; lead u; check match=no; }" GROUP, "check",
        "there is no \"match\" block of the name \"no\"");
}
END_TEST

#define CHECK(port) "server { listen " #port "; lead u; check port=" #port "; } "

START_TEST(a_group_has_few_checks)
{
    load_checks(CHECK(1) CHECK(2) CHECK(3) CHECK(4) "server { listen 5; lead u; check port=3; }");
    refuse(CHECK(1) CHECK(2) CHECK(3) CHECK(4) "server { listen 5; lead u; check; }" GROUP,
        "check;", "upstream \"u\" has more than 4 different health checks");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_check_has_nginx_s_defaults);
    tcase_add_test(tcase, a_time_of_none_is_the_default);
    tcase_add_test(tcase, a_check_has_what_is_written);
    tcase_add_test(tcase, equal_checks_of_a_group_are_one);
    tcase_add_test(tcase, a_value_has_a_form);
    tcase_add_test(tcase, a_check_needs_a_group_with_a_zone);
    tcase_add_test(tcase, a_group_has_few_checks);
}

TEST_MAIN("health_checks", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings when memory runs out. */
#include "base/scarce.h"
#include "settings/loading.h"
#include "support/test.h"

#include <stddef.h>
#include <string.h>

static struct scarce scarce;

/* A protocol with values, in memory that any value may ask for. */
struct values {
    int64_t one, two;
    const fb_target *target;
    int64_t own;
};

static int set_own(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)args;
    *(int64_t *)value = n;
    return 0;
}

static int pair_done(fb_conf *conf, void *own, const void *parent)
{
    static const fb_map_options options = { sizeof(options), "map", 1, 10, 8, 8, 0 };

    (void)own;
    (void)parent;
    if (fb_conf_alloc(conf, 8) == NULL || fb_conf_map(conf, &options) == NULL ||
        fb_conf_target(conf, NULL, "127.0.0.1:1") == NULL)
        return -1;
    return 0;
}

static const fb_directive directives[] = {
    { .name = "pair", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "pair_one", .value = FB_VALUE_NUMBER, .offset = offsetof(struct values, one) },
    { .name = "pair_two", .value = FB_VALUE_NUMBER, .offset = offsetof(struct values, two) },
    { .name = "pair_target", .value = FB_VALUE_TARGET, .offset = offsetof(struct values, target) },
    { .name = "pair_own",
        .value = FB_VALUE_CUSTOM,
        .offset = offsetof(struct values, own),
        .room = sizeof(int64_t),
        .initial = "a b",
        .set = set_own,
        .args_most = 2 },
};
static const fb_metric metrics[] = { { "pairs", FB_COUNTER, 0 } };
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol pair = {
    FB_PROTOCOL_HEADER,
    .name = "pair",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_METRICS(metrics),
    .conf_state = sizeof(struct values),
    .ops = &ops,
    .conf_done = pair_done,
};
static const fb_protocol *const protocols[] = { &pair, NULL };

#if HAVE_OPENSSL
#define SSL                                                                                        \
    "server { listen 85 ssl; ssl_certificate a; ssl_certificate b; ssl_certificate_key a; "        \
    "ssl_certificate_key c; ssl_alpn h2; ssl_alpn_challenge_directory e; ssl_conf_command a b; "   \
    "ssl_conf_command c d; ssl_crl d; plain_a; }\n"
#else
#define SSL ""
#endif

/* Every setter that takes memory. */
static const char configuration[] =
    "env_substitution on;\n"
    "worker_processes 2; error_log a; error_log b; "
    "error_log syslog:server=127.0.0.1,tag=t; env A; env ${B-B}; pid p; working_directory w;\n"
    "worker_cpu_affinity auto; include other; load_module plain_a.so;\n"
    "events { debug_connection ::1; debug_connection ::2; }\n"
    "stream { map $pid $m { hostnames; a \"b $pid\"; .c d; include keys; } "
    "geo $g { 192.0.2.0/24 a; ::1 b; include nets; } split_clients $pid $s { 5% a; * b; }\n"
    "match a { send b; expect c; }\n"
    "idle_timeout 1s; pair_target 127.0.0.1:1; server { listen 80; listen 127.0.0.1:80; "
    "}\n"
    "  server { pair_one 1; pair_two 2; set $m 1; set $n $m$g$s; pair; listen 81-83; pair_own x; "
    "}\n"
    "  server { listen unix:/s; pair; } server { listen 84; plain_a; }\n" SSL "}\n";

/* Fails every request in turn. The configuration must be refused with a message, except where only
 * a message's own memory was missing. */
static void fail_each(struct loading *loading, const char *text)
{
    unsigned n;

    scarce_restart(&scarce, 0);
    load(loading, text);
    ck_assert_msg(loading->cycle != NULL, "%s", loading->report);
    n = scarce.asked;
    ck_assert_uint_gt(n, 20);
    for (unsigned i = 1; i <= n; i++) {
        scarce_restart(&scarce, i);
        load(loading, text);
        ck_assert_msg(loading->cycle == NULL, "request %u of %u is not missed", i, n);
        ck_assert_str_ne(loading->report, "");
    }
}

static void begin_loading(struct loading *loading)
{
    loading_begin(loading);
    loading->options.protocols = protocols;
    loading->options.memory = &scarce.memory;
    add_file(loading, "other", "timer_resolution 1s;");
    add_file(loading, "keys", "x y; z $pid;");
    add_file(loading, "nets", "10.0.0.0/8 c;");
    add_module(loading, "plain_a.so");
}

START_TEST(one_request_that_fails_refuses_the_configuration)
{
    struct loading loading;

    scarce_init(&scarce);
    begin_loading(&loading);
    fail_each(&loading, configuration);
    loading.options.globals = "daemon off;";
    fail_each(&loading, "events { }");
    loading_end(&loading);
}
END_TEST

START_TEST(so_do_all_from_one_on)
{
    struct loading loading;

    scarce_init(&scarce);
    scarce.for_good = true;
    begin_loading(&loading);
    fail_each(&loading, configuration);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, one_request_that_fails_refuses_the_configuration);
    tcase_add_test(tcase, so_do_all_from_one_on);
}

TEST_MAIN("settings memory", add_tests)

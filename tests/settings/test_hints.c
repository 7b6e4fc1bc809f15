/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes of newcomers from nginx or HAProxy, or of omissions: each has one message with the
 * likely intention. */
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

#define HAPROXY "a word of HAProxy: "
#define CHECKS "checks of servers are \"health_check\" beside \"proxy_pass\""
#define TURNS                                                                                      \
    "without a directive such as \"least_conn\", \"random\" or \"hash\" servers take turns"

static const struct {
    const char *text, *says; /* the report, or "" where the text is accepted */
} cases[] = {
    /* nginx's edge cases */
    { "events { iocp_threads 4; }",
        "notice: \"iocp_threads\" directive of nginx has no effect here, ignored in /main:1:10\n" },
    { "events { use rtsig; }", "invalid value \"rtsig\" in \"use\" directive: nginx has rtsig for "
                               "Linux before 2.6.39, the daemon has epoll there in /main:1:14\n" },
    { "events { use iocp; }", "invalid value \"iocp\" in \"use\" directive: only Windows has the "
                              "mechanism in /main:1:14\n" },
    { "events { use aio; }",
        "invalid value \"aio\" in \"use\" directive: aio is no event mechanism any more, files are "
        "read by the \"aio\" directive in /main:1:14\n" },
    { "stream { server { listen 1; udp_timeout 1s; } }",
        "\"udp_timeout\" directive of nginx is not supported: there is no UDP here, only TCP in "
        "/main:1:29\n" },
    { "stream { server { listen 1 multipath; } }",
        "invalid value \"multipath\" in \"listen\" directive: this parameter of nginx is not "
        "supported: there is no Multipath TCP here in /main:1:28\n" },
    { "stream { ip_hash; }",
        "\"ip_hash\" directive of nginx is not supported: \"hash $remote_addr consistent\" keeps a "
        "client with its server in /main:1:10\n" },
    { "stream { upstream a { server 127.0.0.1:9; sticky cookie x; } }",
        "\"sticky\" directive of nginx is not supported: \"hash $remote_addr consistent\" keeps a "
        "client with its server in /main:1:43\n" },
    { "stream { server { listen 1; limit_req zone=a; } }",
        "\"limit_req\" directive of nginx is not supported: \"limit_conn_rate\" limits the rate of "
        "connections in /main:1:29\n" },
    /* words of HAProxy */
    { "stream { upstream a { balance leastconn; server 127.0.0.1:9; } }",
        "unknown directive \"balance\", " HAPROXY TURNS " in /main:1:23\n" },
    { "stream { upstream a { leastconn; server 127.0.0.1:9; } }",
        "unknown directive \"leastconn\", did you mean \"least_conn\"? in /main:1:23\n" },
    { "stream { upstream a { roundrobin; server 127.0.0.1:9; } }",
        "unknown directive \"roundrobin\", " HAPROXY TURNS " in /main:1:23\n" },
    { "stream { upstream a { option tcp-check; server 127.0.0.1:9; } }",
        "unknown directive \"option\", " HAPROXY CHECKS " in /main:1:23\n" },
    { "maxconn 4096;",
        "unknown directive \"maxconn\", " HAPROXY "\"worker_connections\" limits a worker, "
        "\"max_conns=\" a server of an \"upstream\" in /main:1:1\n" },
    { "frontend a { bind 1; }",
        "unknown directive \"frontend\", " HAPROXY "a \"server\" in \"stream\" listens in "
        "/main:1:1\n" },
    { "stream { server { bind 1; } }",
        "unknown directive \"bind\", " HAPROXY "a \"server\" in \"stream\" listens by \"listen\" "
        "in /main:1:19\n" },
    { "stream { upstream a { server 127.0.0.1:9 check inter 2s fall 3 rise 2; } }",
        "invalid value \"check\" in \"server\" directive: " HAPROXY CHECKS " in /main:1:42\n"
        "invalid value \"inter\" in \"server\" directive: " HAPROXY
        "\"health_check\" has interval=, fails= and passes= in /main:1:48\n"
        "invalid value \"2s\" in \"server\" directive: expected a parameter of \"server\" in "
        "/main:1:54\n"
        "invalid value \"fall\" in \"server\" directive: " HAPROXY
        "\"health_check\" has interval=, fails= and passes= in /main:1:57\n"
        "invalid value \"3\" in \"server\" directive: expected a parameter of \"server\" in "
        "/main:1:62\n"
        "invalid value \"rise\" in \"server\" directive: " HAPROXY
        "\"health_check\" has interval=, fails= and passes= in /main:1:64\n"
        "invalid value \"2\" in \"server\" directive: expected a parameter of \"server\" in "
        "/main:1:69\n" },
    { "stream { upstream a { server 127.0.0.1:9 on-marked-down; } }",
        "invalid value \"on-marked-down\" in \"server\" directive: " HAPROXY "the directive is "
        "\"proxy_session_drop\" in /main:1:42\n" },
    { "stream { upstream a { server 127.0.0.1:9 maxconn=5; } }",
        "invalid value \"maxconn=5\" in \"server\" directive: " HAPROXY "the parameter is "
        "max_conns= in /main:1:42\n" },
    { "stream { upstream a { zone a 64k; server 127.0.0.1:9; } server { listen 1; proxy_pass a;"
      " health_check fall=3; } }",
        "invalid value \"fall=3\" in \"health_check\" directive: " HAPROXY "the parameter is "
        "fails= in /main:1:90\n" },
    { "stream { upstream a { zone a 64k; server 127.0.0.1:9; } server { listen 1; proxy_pass a;"
      " health_check inter 2s; } }",
        "invalid value \"inter\" in \"health_check\" directive: " HAPROXY "the parameter is "
        "interval= in /main:1:90\n" },
    /* text that was left out */
    { "stream { server {\n  listen 1\n  proxy_pass 127.0.0.1:9;\n} }",
        "directive \"listen\" is not terminated by \";\" in /main:2:10\n" },
    { "stream { server {\n  listen 1;\n  proxy_pass 127.0.0.1:9\n  proxy_timeout 3s;\n} }",
        "directive \"proxy_pass\" is not terminated by \";\" in /main:3:14\n" },
    { "stream { server { listen 1; proxy_pass tcp://127.0.0.1:80; } }",
        "invalid address \"tcp://127.0.0.1:80\": an address has no scheme such as \"tcp://\" in "
        "/main:1:40\n" },
    { "stream { map $remote_addr $a { ~^1{1,3}$ b; } }",
        "\"{\" within the regular expression \"~^1\" opens a block: quote the expression in "
        "/main:1:35\n" },
    { "stream { match redis { expect OK; } upstream a { zone a 64k; server 127.0.0.1:9; }"
      " server { listen 1; proxy_pass a; health_check match=rediss; } }",
        "there is no \"match\" block of the name \"rediss\", did you mean \"redis\"? in "
        "/main:1:117\n" },
};

START_TEST(a_mistake_has_its_hint)
{
    bool is_main = strncmp(cases[_i].text, "events", 6) == 0;
    struct loading loading;
    char text[1024];

    loading_begin(&loading);
    snprintf(text, sizeof(text), "%s%s", cases[_i].text, is_main ? "" : " events { }");
    load(&loading, text);
    ck_assert_str_eq(loading.report, cases[_i].says);
    ck_assert_int_eq(loading.cycle != NULL, strncmp(cases[_i].says, "notice", 6) == 0);
    loading_end(&loading);
}
END_TEST

/* The name of a directive may be an argument, on a line of its own too. */
START_TEST(an_argument_may_have_a_directive_s_name)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        "events { } stream { server {\n listen 1;\n server_name a.test\n  echo\n  b.test;\n echo; "
        "} }",
        "");
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_mistake_has_its_hint, 0, (int)countof(cases));
    tcase_add_test(tcase, an_argument_may_have_a_directive_s_name);
}

TEST_MAIN("hints", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepted configurations with a doubtful meaning: each has a warning, and near variants have
 * none. */
#include "settings/loading.h"
#include "support/test.h"

#define TWO "worker_processes 2; "
#define ZONE                                                                                       \
    " in upstream \"a\" is counted by 2 workers separately: a \"zone\" has all workers count "     \
    "together "                                                                                    \
    "in /main:1:"

static const struct {
    const char *text, *says;
} cases[] = {
    /* what nobody reads */
    { "stream { map $ssl_preread_server_name $to { default 127.0.0.1:9; }"
      " server { listen 1; proxy_pass $to; } }",
        "warning: $ssl_preread_server_name has no value in any session: no server has "
        "\"ssl_preread on\" in /main:1:14\n" },
    { "stream { server { listen 1; return $ssl_preread_protocol; } }",
        "warning: $ssl_preread_protocol has no value in any session: no server has "
        "\"ssl_preread on\" in /main:1:36\n" },
    { "stream { server { listen 1; ssl_preread on; return $ssl_preread_protocol; } }", "" },
    { "stream { ssl_preread on; server { listen 1; return $ssl_preread_protocol; } }", "" },
    /* rules behind one that is for all */
    { "stream { server { listen 1; echo; allow all; deny 10.0.0.1; } }",
        "warning: the rule is never reached: \"allow all\" stands before it in /main:1:46\n" },
    { "stream { deny all; allow 10.0.0.1; server { listen 1; echo; } server { listen 2; echo; } }",
        "warning: the rule is never reached: \"deny all\" stands before it in /main:1:20\n" },
    { "stream { server { listen 1; echo; deny 10.0.0.1; allow all; } }", "" },
    { "stream { server { listen 1; echo; allow 10.0.0.1; deny all; deny all; } }",
        "warning: the rule is never reached: \"deny all\" stands before it in /main:1:61\n" },
    /* numbers that each worker has for itself */
    { TWO "stream { upstream a { server 127.0.0.1:9 max_conns=5; }"
          " server { listen 1; proxy_pass a; } }",
        "warning: \"max_conns=\"" ZONE "39\n" },
    { TWO "stream { upstream a { server 127.0.0.1:9 max_fails=3; }"
          " server { listen 1; proxy_pass a; } }",
        "warning: \"max_fails=\"" ZONE "39\n" },
    { "stream { upstream a { server 127.0.0.1:9 max_conns=5; }"
      " server { listen 1; proxy_pass a; } }",
        "" },
    { TWO "stream { upstream a { zone a 64k; server 127.0.0.1:9 max_conns=5 max_fails=2; }"
          " server { listen 1; proxy_pass a; } }",
        "" },
    { TWO "stream { upstream a { server 127.0.0.1:9 max_fails=0 max_conns=0; }"
          " server { listen 1; proxy_pass a; } }",
        "" },
    /* rules that see the proxy */
    { "stream { server { listen 1 proxy_protocol; echo; allow 10.0.0.0/8; deny all; } }",
        "notice: \"allow\" and \"deny\" of this server are for the addresses of proxies: without "
        "\"set_real_ip_from\" no PROXY header is believed in /main:1:10\n" },
    { "stream { server { listen 1 proxy_protocol; echo; set_real_ip_from 127.0.0.1;"
      " allow 10.0.0.0/8; deny all; } }",
        "" },
    { "stream { server { listen 1; echo; allow 10.0.0.0/8; deny all; } }", "" },
    /* groups */
    { "stream { upstream a { server 127.0.0.1:9; server 127.0.0.1:9 weight=2; }"
      " server { listen 1; proxy_pass a; } }",
        "warning: server 127.0.0.1:9 stands twice in upstream \"a\": \"weight=\" gives the server "
        "more sessions in /main:1:19\n" },
    { "stream { upstream a { server 127.0.0.1:9; server 127.0.0.1:9 backup; }"
      " server { listen 1; proxy_pass a; } }",
        "warning: server 127.0.0.1:9 stands twice in upstream \"a\": \"weight=\" gives the server "
        "more sessions in /main:1:19\n" },
    { "stream { upstream a { server 127.0.0.1:9; queue 10; }"
      " server { listen 1; proxy_pass a; } }",
        "warning: no session ever waits in the \"queue\" of upstream \"a\": no server has "
        "\"max_conns=\", a name or a health check in /main:1:19\n" },
    { "stream { upstream a { zone a 64k; server 127.0.0.1:9 max_conns=1; queue 10; }"
      " server { listen 1; proxy_pass a; } }",
        "" },
    { "stream { upstream a { server 127.0.0.1:9; server 127.0.0.1:8; queue 10; }"
      " server { listen 1; proxy_pass a; } }",
        "" },
    { "stream { upstream a { zone a 64k; server 127.0.0.1:9; queue 10; }"
      " server { listen 1; proxy_pass a; health_check; } }",
        "" },
    { "stream { upstream a { server 127.0.0.1:9; } server { listen 1; echo; } }",
        "warning: nothing leads to upstream \"a\" in /main:1:19\n" },
    { "stream { upstream a { server 127.0.0.1:9; }"
      " server { listen 1; proxy_pass $remote_addr; } }",
        "" },
};

START_TEST(what_hardly_means_what_it_says_is_warned_of)
{
    struct loading loading;
    char text[1024];

    loading_begin(&loading);
    snprintf(text, sizeof(text), "%s events { }", cases[_i].text);
    accept_text(&loading, text, cases[_i].says);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, what_hardly_means_what_it_says_is_warned_of, 0, (int)countof(cases));
}

TEST_MAIN("warnings", add_tests)

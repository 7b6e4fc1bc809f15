/* SPDX-License-Identifier: BSD-2-Clause */
/* `server_name`, and servers that share an address: the default server, and the warnings about the
 * rest. */
#include "settings/loading.h"
#include "support/regex_built.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The blocks stand in lines of their own, from the second on. */
#define STREAM(...) STREAM_LINES(__VA_ARGS__, "", "", "")
#define STREAM_LINES(a, b, c, ...) "events { } stream {\n" a "\n" b "\n" c "\n}"
#define UNREACHED(address, file_line)                                                              \
    UNREACHED_AS(address,                                                                          \
        "a client asks for a name only where the address has \"ssl\", or "                         \
        "\"ssl_preread\"",                                                                         \
        file_line)
#define UNREACHED_AS(address, why, file_line)                                                      \
    "warning: this server gets no clients of " address ": " why                                    \
    ", and the default server in " file_line " takes all of them in "
#define FORMS "expected a name, \"*.name\", \".name\", \"name.*\" or \"~regular expression\""

/* Returns the number of the server, from 1 on, that gets the clients of the address. */
static unsigned server_at(const struct loading *loading, const char *address)
{
    const struct listener *listener;
    const struct binding *binding;
    const struct server *server;
    unsigned found = 0;

    STAILQ_FOREACH (listener, &loading->cycle->stream.listeners.list, link) {
        const struct port *port = listener->owner;

        STAILQ_FOREACH (binding, &port->bindings, link) {
            unsigned number = 1;

            if (strcmp(binding->text, address) != 0)
                continue;
            ck_assert_uint_eq(found, 0); /* an address has one */
            STAILQ_FOREACH (server, &loading->cycle->stream.servers, link) {
                if (server == binding->server)
                    found = number;
                number++;
            }
        }
    }
    return found;
}

START_TEST(names_have_a_form)
{
    static const char *const good[] = { "a", "example.com", "*.example.com", ".example.com",
        "www.example.*", "_", "\"\"", "-", "a.b.", "$hostname", "a_b *.b c.*", "\"a b\"" };
    static const char *const bad[] = { "*", ".", "*.", "*a.com", "a*b.com", "www.*.com", "*.*.com",
        "*.b.*", "a..b", ".a..b", "*.*", "..a", "*..a", ".*" };
    struct loading loading;
    char text[256], expected[256];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(good); i++) {
        snprintf(text, sizeof(text), "events { } stream { server { listen 1; server_name %s; } }",
            good[i]);
        accept_text(&loading, text, "");
    }
    for (size_t i = 0; i < countof(bad); i++) {
        snprintf(text, sizeof(text), "events { } stream { server { listen 1; server_name a %s; } }",
            bad[i]);
        snprintf(expected, sizeof(expected),
            "invalid value \"%s\" in \"server_name\" directive: " FORMS " in /main:1:54\n", bad[i]);
        refuse_text(&loading, text, expected);
    }
    refuse_text(&loading, "events { } stream { server { listen 1; server_name ~; } }",
        "invalid value \"~\" in \"server_name\" directive: expected a regular expression after "
        "\"~\" in /main:1:52\n");
    accept_text(&loading, "events { } stream { server { listen 1; server_name a/b; } }",
        "warning: server name \"a/b\" has suspicious symbols in /main:1:52\n");
    loading_end(&loading);
}
END_TEST

START_TEST(regular_expressions_are_compiled)
{
    struct loading loading;

    if (!regex_built()) {
        printf("this build has no regular expressions\n");
        return;
    }
    loading_begin(&loading);
    accept_text(&loading, "events { } stream { server { listen 1; server_name ~^w\\d+$ a; } }", "");
    /* captures are variables */
    accept_text(&loading,
        "events { } stream { server { listen 1; server_name \"~^(?<site>a{2})\"; return $site$1; } "
        "}",
        "");
    load(&loading, "events { } stream { server { listen 1; server_name ~(; } }");
    ck_assert_ptr_null(loading.cycle);
    ck_assert_ptr_nonnull(strstr(loading.report, "invalid value \"~(\" in \"server_name\""));
    loading_end(&loading);
}
END_TEST

START_TEST(an_address_has_a_default_server)
{
    struct loading loading;

    loading_begin(&loading);
    /* the first server, or the server marked as the default */
    accept_text(&loading,
        STREAM("server { listen 80; server_name a; }", "server { listen 80; server_name b; }"),
        UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n");
    ck_assert_uint_eq(server_at(&loading, "0.0.0.0:80"), 1);
    accept_text(&loading, STREAM("server { listen 80; }", "server { listen 80; server_name b; }"),
        UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n");
    accept_text(&loading, STREAM("server { listen 80; }", "server { listen *:80 default_server; }"),
        UNREACHED("0.0.0.0:80", "/main:3") "/main:2:17\n");
    ck_assert_uint_eq(server_at(&loading, "0.0.0.0:80"), 2);
    accept_text(&loading,
        STREAM("server { listen [::1]:80; listen unix:/s; server_name a; }",
            "server { listen [::1]:80; server_name b; }",
            "server { listen unix:/s default_server; server_name c; }"),
        UNREACHED("unix:/s", "/main:4") "/main:2:34\n" UNREACHED("[::1]:80", "/main:2") "/main:3:"
                                                                                        "17\n");
    ck_assert_uint_eq(server_at(&loading, "[::1]:80"), 1);
    ck_assert_uint_eq(server_at(&loading, "unix:/s"), 3);
    /* alone it says nothing */
    accept_text(&loading, STREAM("server { listen 80 default_server; }"), "");
    loading_end(&loading);
}
END_TEST

START_TEST(ranges_and_wildcards_have_one_too)
{
    struct loading loading;

    loading_begin(&loading);
    /* a line is enough for a range */
    accept_text(&loading,
        STREAM("server { listen 127.0.0.1:7-9; }",
            "server { listen 127.0.0.1:8-9 default_server; server_name b; }"),
        UNREACHED("127.0.0.1:8", "/main:3") "/main:2:17\n");
    ck_assert_uint_eq(server_at(&loading, "127.0.0.1:7"), 1);
    ck_assert_uint_eq(server_at(&loading, "127.0.0.1:8"), 2);
    ck_assert_uint_eq(server_at(&loading, "127.0.0.1:9"), 2);
    accept_text(&loading,
        STREAM("server { listen 80; listen 127.0.0.1:80; }",
            "server { listen 127.0.0.1:80 default_server; }"),
        UNREACHED("127.0.0.1:80", "/main:3") "/main:2:28\n");
    ck_assert_uint_eq(server_at(&loading, "0.0.0.0:80"), 1);
    ck_assert_uint_eq(server_at(&loading, "127.0.0.1:80"), 2);
    loading_end(&loading);
}
END_TEST

#define READ_AHEAD "server { listen 80; ssl_preread on; "

START_TEST(a_server_is_reached_by_its_names)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading, STREAM(READ_AHEAD "}", "server { listen 80; server_name a; }"), "");
    accept_text(&loading,
        STREAM(READ_AHEAD "server_name a; }", "server { listen 80; }", "server { listen 81; }"),
        UNREACHED_AS("0.0.0.0:80", "it has no \"server_name\"", "/main:2") "/main:3:17\n");
    /* the default server decides whether the message is read */
    accept_text(&loading,
        STREAM(READ_AHEAD "server_name a; }", "server { listen 80 default_server; }"),
        UNREACHED("0.0.0.0:80", "/main:3") "/main:2:17\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_slot_is_reserved_for_the_server_of_a_name)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        STREAM(READ_AHEAD "return 1; }",
            "server { listen 80; server_name a; proxy_pass 192.0.2.1:1; }",
            "server { listen 80; server_name b; return 2; }"),
        "");
    ck_assert(loading_server(&loading, 0)->connects);
    ck_assert(loading_server(&loading, 1)->connects);
    ck_assert(!loading_server(&loading, 2)->connects);
    accept_text(&loading,
        STREAM(READ_AHEAD "return 1; }", "server { listen 80; server_name a; pass 192.0.2.1:82; }",
            "server { listen 192.0.2.1:82; proxy_pass 192.0.2.1:1; }"),
        "");
    ck_assert(loading_server(&loading, 1)->passes && loading_server(&loading, 1)->connects);
    ck_assert(!loading_server(&loading, 0)->passes && loading_server(&loading, 0)->connects);
    loading_end(&loading);
}
END_TEST

START_TEST(two_cannot_be_the_default)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading,
        STREAM("server { listen 80 default_server; }",
            "server { listen 80 default_server; server_name a; }"),
        "duplicate default server for 0.0.0.0:80, there is already a default server in /main:2 in "
        "/main:3:17\n");
    /* clients cannot tell them apart */
    refuse_text(&loading, STREAM("server { listen 80; }", "server { listen 80; }"),
        "duplicate \"listen\" of 0.0.0.0:80, the address is already used in /main:2 in "
        "/main:3:17\n");
    refuse_text(&loading,
        STREAM("server { listen 80; }", "server { listen 80; listen 80; server_name a; }"),
        "duplicate \"listen\" of 0.0.0.0:80, the address is already used in /main:2 in "
        "/main:3:28\n");
    loading_end(&loading);
}
END_TEST

START_TEST(options_are_given_once)
{
    const struct listener *listener;
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading,
        STREAM("server { listen 80 backlog=5; }", "server { listen 80 bind; server_name a; }"),
        "duplicate listen options for 0.0.0.0:80, the options are already given in /main:2 in "
        "/main:3:17\n");
    accept_text(&loading,
        STREAM("server { listen 80; }", "server { listen 80 backlog=5; server_name a; }"),
        UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n");
    listener = STAILQ_FIRST(&loading.cycle->stream.listeners.list);
    ck_assert_int_eq(listener->options.backlog, 5);
    ck_assert(listener->options.tcp_nodelay);
    accept_text(&loading,
        STREAM("server { listen 80 proxy_protocol; }", "server { listen 80; server_name a; }"),
        "warning: \"proxy_protocol\" is in force for all servers of 0.0.0.0:80, although not all "
        "servers have the parameter in /main:3:17\n" UNREACHED(
            "0.0.0.0:80", "/main:2") "/main:3:17\n");
    /* tcp_nodelay is the default server's */
    accept_text(&loading,
        STREAM("server { listen 80; }", "server { listen 80 default_server; tcp_nodelay off; }"),
        UNREACHED("0.0.0.0:80", "/main:3") "/main:2:17\n");
    listener = STAILQ_FIRST(&loading.cycle->stream.listeners.list);
    ck_assert(!listener->options.tcp_nodelay);
    loading_end(&loading);
}
END_TEST

#define CONFLICT(name, place)                                                                      \
    "warning: conflicting server name \"" name "\" on 0.0.0.0:80, ignored in " place "\n"

START_TEST(a_name_has_one_server_at_an_address)
{
    char host[256] = "", text[512], expected[1024];
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading,
        STREAM("server { listen 80; server_name A.com *.b; }",
            "server { listen 80; server_name x a.COM .b b; }"),
        UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n" CONFLICT("a.com", "/main:3:35")
            CONFLICT(".b", "/main:3:41") CONFLICT("b", "/main:3:44"));
    /* at other addresses all may be used again, and so may regular expressions */
    accept_text(&loading,
        STREAM("server { listen 80; server_name a; }", "server { listen 81; server_name a a; }"),
        "");
    if (regex_built())
        accept_text(&loading,
            STREAM(
                "server { listen 80; server_name ~a; }", "server { listen 80; server_name ~a; }"),
            UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n");
    ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
    snprintf(text, sizeof(text),
        STREAM("server { listen 80; server_name $hostname; }",
            "server { listen 80; server_name %s; }"),
        host);
    snprintf(expected, sizeof(expected),
        UNREACHED("0.0.0.0:80", "/main:2") "/main:3:17\n" CONFLICT("%s", "/main:3:33"), host);
    accept_text(&loading, text, expected);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, names_have_a_form);
    tcase_add_test(tcase, regular_expressions_are_compiled);
    tcase_add_test(tcase, an_address_has_a_default_server);
    tcase_add_test(tcase, ranges_and_wildcards_have_one_too);
    tcase_add_test(tcase, a_server_is_reached_by_its_names);
    tcase_add_test(tcase, a_slot_is_reserved_for_the_server_of_a_name);
    tcase_add_test(tcase, two_cannot_be_the_default);
    tcase_add_test(tcase, options_are_given_once);
    tcase_add_test(tcase, a_name_has_one_server_at_an_address);
}

TEST_MAIN("server_name", add_tests)

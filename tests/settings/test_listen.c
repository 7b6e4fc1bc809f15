/* SPDX-License-Identifier: BSD-2-Clause */
/* `listen`: the parameters, and the sockets of all `listen` directives together. */
#include "net/listener_options.h"
#include "settings/loading.h"
#include "support/test.h"

#include "net/listener_options.h"

#include <string.h>

/* The stream's contents become a configuration; the column of the contents' first byte is 21. */
#define STREAM(contents) "events { } stream { " contents " }"

static const struct {
    const char *parameters;
    struct listener_options expected; /* with what differs from the defaults */
} good[] = {
    { "", { .backlog = 511, .fastopen = -1, .ipv6only = true } },
    { "backlog=1024", { .backlog = 1024, .fastopen = -1, .ipv6only = true } },
    { "backlog=-1", { .backlog = -1, .fastopen = -1, .ipv6only = true } },
    { "bind", { .backlog = 511, .fastopen = -1, .ipv6only = true, .bind = true } },
    { "deferred", { .backlog = 511, .fastopen = -1, .ipv6only = true, .deferred = true } },
    { "fastopen=256", { .backlog = 511, .fastopen = 256, .ipv6only = true } },
    { "ipv6only=on", { .backlog = 511, .fastopen = -1, .ipv6only = true } },
    { "ipv6only=off", { .backlog = 511, .fastopen = -1 } },
    { "rcvbuf=64k", { .backlog = 511, .fastopen = -1, .ipv6only = true, .rcvbuf = 65536 } },
    { "sndbuf=1m", { .backlog = 511, .fastopen = -1, .ipv6only = true, .sndbuf = 1048576 } },
    { "reuseport", { .backlog = 511, .fastopen = -1, .ipv6only = true, .reuseport = true } },
    { "so_keepalive=on",
        { .backlog = 511, .fastopen = -1, .ipv6only = true, .keepalive = LISTENER_KEEPALIVE_ON } },
    { "so_keepalive=off",
        { .backlog = 511, .fastopen = -1, .ipv6only = true, .keepalive = LISTENER_KEEPALIVE_OFF } },
    { "so_keepalive=30m:10s:5", { .backlog = 511,
                                    .fastopen = -1,
                                    .ipv6only = true,
                                    .keepalive = LISTENER_KEEPALIVE_ON,
                                    .keepidle = 1800,
                                    .keepintvl = 10,
                                    .keepcnt = 5 } },
    { "so_keepalive=30m::10", { .backlog = 511,
                                  .fastopen = -1,
                                  .ipv6only = true,
                                  .keepalive = LISTENER_KEEPALIVE_ON,
                                  .keepidle = 1800,
                                  .keepcnt = 10 } },
    { "so_keepalive=:75", { .backlog = 511,
                              .fastopen = -1,
                              .ipv6only = true,
                              .keepalive = LISTENER_KEEPALIVE_ON,
                              .keepintvl = 75 } },
    { "backlog=9 reuseport deferred",
        { .backlog = 9, .fastopen = -1, .ipv6only = true, .reuseport = true, .deferred = true } },
};

#define KEEPALIVE "expected \"on\", \"off\" or keepidle:keepintvl:keepcnt such as 30m::10"
#define PARAMETER "expected a parameter of \"listen\""
#define NGINX "this parameter of nginx is not supported"
#define UDP ": there is no UDP here, only TCP"

static const struct {
    const char *values, *word, *message;
} bad[] = {
    { "1 backlog=x", "backlog=x", "expected a number, at least -1" },
    { "1 backlog=-2", "backlog=-2", "expected a number, at least -1" },
    { "1 backlog=", "backlog=", "expected a number, at least -1" },
    { "1 fastopen=0", "fastopen=0", "expected a number, at least 1" },
    { "1 ipv6only=yes", "ipv6only=yes", "expected \"on\" or \"off\"" },
    { "1 rcvbuf=0", "rcvbuf=0", "expected a size such as 64k" },
    { "1 rcvbuf=64kb", "rcvbuf=64kb", "expected a size such as 64k" },
    { "1 sndbuf=3g", "sndbuf=3g", "expected a size such as 64k" },
    { "1 so_keepalive=yes", "so_keepalive=yes", KEEPALIVE },
    { "1 so_keepalive=1:2:3:4", "so_keepalive=1:2:3:4", KEEPALIVE },
    { "1 so_keepalive=10ms", "so_keepalive=10ms", KEEPALIVE },
    { "1 so_keepalive=::", "so_keepalive=::", "expected at least one of the three values" },
    { "1 so_keepalive=", "so_keepalive=", "expected at least one of the three values" },
    { "1 resueport", "resueport", PARAMETER ", did you mean \"reuseport\"?" },
    { "1 backlgo=5", "backlgo=5", PARAMETER ", did you mean \"backlog=\"?" },
    { "1 reuseport=on", "reuseport=on", PARAMETER ", did you mean \"reuseport\"?" },
    { "1 default_serve", "default_serve", PARAMETER ", did you mean \"default_server\"?" },
    { "1 udp", "udp", NGINX UDP },
    { "1 proxy_protocol=on", "proxy_protocol=on", PARAMETER ", did you mean \"proxy_protocol\"?" },
    { "1 setfib=1", "setfib=1", NGINX ": only FreeBSD has routing tables of a socket" },
    { "1 accept_filter=dataready", "accept_filter=dataready",
        NGINX ": only FreeBSD and NetBSD have accept filters" },
    { "unix:/tmp/s reuseport", "unix:/tmp/s", "a unix socket cannot have \"reuseport\"" },
    { "0", "0", "port out of range 1 to 65535" },
    { "65536", "65536", "port out of range 1 to 65535" },
    { "8010-8000", "8010-8000", "the range of ports runs backwards" },
    { "127.0.0.1", "127.0.0.1", "no port" },
    { "127.0.0.1:", "127.0.0.1:", "no port" },
    { "[::1:80", "[::1:80", "\"]\" is missing" },
    { "::1:80", "::1:80", "more than one \":\", an IPv6 address needs brackets" },
    { "1.2.3:80", "1.2.3:80", "invalid IPv4 address" },
    { "a/b:80", "a/b:80", "invalid host" },
    { "unix:", "unix:", "no path in the unix domain socket" },
};

static const struct listener *first_listener(const struct loading *loading)
{
    return STAILQ_FIRST(&loading->cycle->stream.listeners.list);
}

/* A parameter of some systems is a mistake on the rest. */
static void refuse_lacking(struct loading *loading, const char *text, const char *parameter)
{
    unsigned column = (unsigned)(strstr(text, "[::1]") - text) + 1;
    char expected[256];

    snprintf(expected, sizeof(expected),
        "invalid value \"[::1]:7007\" in \"listen\" directive: \"%s\" is not supported by this "
        "build in /main:1:%u\n",
        parameter, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_parameter_sets_its_option)
{
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(good); i++) {
        const struct listener_options *is, *expected = &good[i].expected;

        snprintf(
            text, sizeof(text), STREAM("server { listen [::1]:7007 %s; }"), good[i].parameters);
        if (listener_lacks(expected) != NULL) {
            refuse_lacking(&loading, text, listener_lacks(expected));
            continue;
        }
        accept_text(&loading, text, "");
        is = &first_listener(&loading)->options;
        ck_assert_int_eq(is->backlog, expected->backlog);
        ck_assert_int_eq(is->rcvbuf, expected->rcvbuf);
        ck_assert_int_eq(is->sndbuf, expected->sndbuf);
        ck_assert_int_eq(is->fastopen, expected->fastopen);
        ck_assert_int_eq(is->deferred, expected->deferred);
        ck_assert_int_eq(is->reuseport, expected->reuseport);
        ck_assert_int_eq(is->bind, expected->bind);
        ck_assert_int_eq(is->ipv6only, expected->ipv6only);
        ck_assert_int_eq(is->keepalive, expected->keepalive);
        ck_assert_int_eq(is->keepidle, expected->keepidle);
        ck_assert_int_eq(is->keepintvl, expected->keepintvl);
        ck_assert_int_eq(is->keepcnt, expected->keepcnt);
        ck_assert(is->tcp_nodelay);
    }
    loading_end(&loading);
}
END_TEST

START_TEST(a_wrong_address_or_parameter_is_refused)
{
    static const char before[] = "events { } stream { server { listen ";
    struct loading loading;
    char text[256], expected[512];

    loading_begin(&loading);
    for (size_t i = 0; i < countof(bad); i++) {
        size_t at = (size_t)(strstr(bad[i].values, bad[i].word) - bad[i].values);

        snprintf(text, sizeof(text), "%s%s; } }", before, bad[i].values);
        snprintf(expected, sizeof(expected),
            "invalid value \"%s\" in \"listen\" directive: %s in /main:1:%zu\n", bad[i].word,
            bad[i].message, sizeof(before) + at);
        refuse_text(&loading, text, expected);
    }
    refuse_text(&loading, STREAM("server { listen 1.2.3:x backlog=y udp; }"),
        "invalid value \"1.2.3:x\" in \"listen\" directive: invalid port in /main:1:37\n"
        "invalid value \"backlog=y\" in \"listen\" directive: expected a number, at least -1 "
        "in /main:1:45\n"
        "invalid value \"udp\" in \"listen\" directive: " NGINX UDP " in /main:1:55\n");
    loading_end(&loading);
}
END_TEST

/* The listeners and servers, as "SOCKET(SERVED SERVED) SOCKET(SERVED)"; a server is shown as its
 * number. */
static void check_ports(struct loading *loading, const char *text, const char *expected)
{
    const struct listener *listener;
    const struct binding *binding;
    const struct server *server;
    char shown[1024] = "";

    accept_text(loading, text, "");
    STAILQ_FOREACH (listener, &loading->cycle->stream.listeners.list, link) {
        const struct port *port = listener->owner;
        unsigned n = 0;

        snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s%s(",
            shown[0] != '\0' ? " " : "", listener->text);
        STAILQ_FOREACH (binding, &port->bindings, link) {
            unsigned number = 1;

            STAILQ_FOREACH (server, &loading->cycle->stream.servers, link) {
                if (server == binding->server)
                    break;
                number++;
            }
            ck_assert_ptr_nonnull(server);
            snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s%s=%u",
                n++ > 0 ? " " : "", binding->text, number);
        }
        ck_assert_int_eq(port->several, n > 1);
        strcat(shown, ")");
    }
    ck_assert_str_eq(shown, expected);
}

START_TEST(each_address_has_a_socket)
{
    struct loading loading;

    loading_begin(&loading);
    check_ports(&loading,
        STREAM("server { listen 127.0.0.1:1; listen [::1]:1; } "
               "server { listen 127.0.0.2:1; listen unix:/tmp/s; }"),
        "127.0.0.1:1(127.0.0.1:1=1) [::1]:1([::1]:1=1) 127.0.0.2:1(127.0.0.2:1=2) "
        "unix:/tmp/s(unix:/tmp/s=2)");
    check_ports(&loading, STREAM("server { listen 127.0.0.1:7-9; }"),
        "127.0.0.1:7(127.0.0.1:7=1) 127.0.0.1:8(127.0.0.1:8=1) 127.0.0.1:9(127.0.0.1:9=1)");
    check_ports(&loading, STREAM("server { listen 80; listen [::]:80; }"),
        "0.0.0.0:80(0.0.0.0:80=1) [::]:80([::]:80=1)");
    check_ports(&loading, STREAM("server { listen *:80; listen *:81; }"),
        "0.0.0.0:80(0.0.0.0:80=1) 0.0.0.0:81(0.0.0.0:81=1)");
    loading_end(&loading);
}
END_TEST

START_TEST(a_wildcard_takes_its_port_s_addresses_in)
{
    struct loading loading;

    loading_begin(&loading);
    check_ports(&loading, STREAM("server { listen 80; } server { listen 127.0.0.1:80; }"),
        "0.0.0.0:80(0.0.0.0:80=1 127.0.0.1:80=2)");
    /* in any order the socket's own address comes first */
    check_ports(&loading,
        STREAM("server { listen 127.0.0.1:80; listen 127.0.0.2:80; } server { listen 80; }"),
        "0.0.0.0:80(0.0.0.0:80=2 127.0.0.1:80=1 127.0.0.2:80=1)");
    /* no further port is taken, and no second family */
    check_ports(&loading,
        STREAM("server { listen 80; } server { listen 127.0.0.1:81; listen [::1]:80; }"),
        "0.0.0.0:80(0.0.0.0:80=1) 127.0.0.1:81(127.0.0.1:81=2) [::1]:80([::1]:80=2)");
    check_ports(&loading, STREAM("server { listen [::]:80; } server { listen [::1]:80; }"),
        "[::]:80([::]:80=1 [::1]:80=2)");
    check_ports(&loading, STREAM("server { listen 80-82; } server { listen 127.0.0.1:81-83; }"),
        "0.0.0.0:80(0.0.0.0:80=1) 0.0.0.0:81(0.0.0.0:81=1 127.0.0.1:81=2) "
        "0.0.0.0:82(0.0.0.0:82=1 127.0.0.1:82=2) 127.0.0.1:83(127.0.0.1:83=2)");
    loading_end(&loading);
}
END_TEST

START_TEST(bind_and_every_option_separate_them)
{
    static const char *const options[] = { "bind", "backlog=5", "ipv6only=on", "rcvbuf=1k",
        "reuseport", "sndbuf=1k", "so_keepalive=on", "deferred", "fastopen=1" };
    size_t n = countof(options) - (LINUX_SYSTEM ? 0 : 2);
    struct loading loading;
    char text[256];

    loading_begin(&loading);
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text),
            STREAM("server { listen 80; } server { listen 127.0.0.1:80 %s; }"), options[i]);
        check_ports(&loading, text, "0.0.0.0:80(0.0.0.0:80=1) 127.0.0.1:80(127.0.0.1:80=2)");
    }
    loading_end(&loading);
}
END_TEST

START_TEST(an_address_has_one_server)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, STREAM("server { listen 80; } server { listen 0.0.0.0:80; }"),
        "duplicate \"listen\" of 0.0.0.0:80, the address is already used in /main:1 in "
        "/main:1:59\n");
    refuse_text(&loading, "events { }\nstream { server {\nlisten 80;\nlisten *:80 bind; } }",
        "duplicate \"listen\" of 0.0.0.0:80, the address is already used in /main:3 in "
        "/main:4:8\n");
    refuse_text(&loading, STREAM("server { listen [::1]:80; listen [0:0::1]:80; }"),
        "duplicate \"listen\" of [::1]:80, the address is already used in /main:1 in /main:1:54\n");
    refuse_text(&loading, STREAM("server { listen unix:/s; } server { listen unix:/s; }"),
        "duplicate \"listen\" of unix:/s, the address is already used in /main:1 in /main:1:64\n");
    /* the range's other ports merely follow */
    refuse_text(&loading, STREAM("server { listen 80-90; } server { listen 85-95; }"),
        "duplicate \"listen\" of 0.0.0.0:85, the address is already used in /main:1 in "
        "/main:1:62\n");
    loading_end(&loading);
}
END_TEST

/* Every port of three addresses: clashes are found without a comparison of all pairs. */
START_TEST(many_are_told_apart)
{
    const struct listener *listener;
    struct loading loading;
    unsigned n = 0, several = 0;

    loading_begin(&loading);
    accept_text(&loading,
        STREAM("server { listen 127.0.0.1:1-65535; listen 127.0.0.2:1-65535; listen 30000; }"
               " server { listen [::1]:1-65535; listen [::]:30000-30001; listen unix:/s; }"),
        "");
    STAILQ_FOREACH (listener, &loading.cycle->stream.listeners.list, link) {
        const struct port *port = listener->owner;

        n++;
        several += port->several;
    }
    ck_assert_uint_eq(n, 3 * 65535 - 2 - 2 + 3 + 1);
    ck_assert_uint_eq(several, 3);
    /* wherever the clash is */
    refuse_text(&loading,
        STREAM("server { listen 127.0.0.1:1-65535; } server { listen 127.0.0.1:1; }"
               " server { listen 127.0.0.1:65535; } server { listen 127.0.0.1:30000-30002; }"),
        "duplicate \"listen\" of 127.0.0.1:1, the address is already used in /main:1 in "
        "/main:1:74\n"
        "duplicate \"listen\" of 127.0.0.1:65535, the address is already used in /main:1 in "
        "/main:1:105\n"
        "duplicate \"listen\" of 127.0.0.1:30000, the address is already used in /main:1 in "
        "/main:1:140\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_server_needs_one)
{
    struct loading loading;

    loading_begin(&loading);
    refuse_text(&loading, STREAM("server { echo; }"),
        "no \"listen\" is defined for this server in /main:1:21\n");
    refuse_text(&loading, STREAM("server { } server { listen 80; } server { }"),
        "no \"listen\" is defined for this server in /main:1:21\n"
        "no \"listen\" is defined for this server in /main:1:54\n");
    /* an error was reported once */
    refuse_text(&loading, STREAM("server { listen x; } server { }"),
        "invalid value \"x\" in \"listen\" directive: no port in /main:1:37\n"
        "no \"listen\" is defined for this server in /main:1:42\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_listener_has_its_server_s_tcp_nodelay)
{
    struct loading loading;

    loading_begin(&loading);
    accept_text(&loading, STREAM("tcp_nodelay off; server { listen 80; }"), "");
    ck_assert(!first_listener(&loading)->options.tcp_nodelay);
    accept_text(&loading, STREAM("tcp_nodelay off; server { listen 80; tcp_nodelay on; }"), "");
    ck_assert(first_listener(&loading)->options.tcp_nodelay);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_parameter_sets_its_option);
    tcase_add_test(tcase, a_wrong_address_or_parameter_is_refused);
    tcase_add_test(tcase, each_address_has_a_socket);
    tcase_add_test(tcase, a_wildcard_takes_its_port_s_addresses_in);
    tcase_add_test(tcase, bind_and_every_option_separate_them);
    tcase_add_test(tcase, an_address_has_one_server);
    tcase_add_test(tcase, many_are_told_apart);
    tcase_add_test(tcase, a_server_needs_one);
    tcase_add_test(tcase, a_listener_has_its_server_s_tcp_nodelay);
}

TEST_MAIN("listen", add_tests)

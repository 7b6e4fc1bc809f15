/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of servers: the group of a directive, contradictions in a block, and the workers' needs.
 * Wrong values of single directives: wrong_upstream.def. */
#include "features/features.h"
#include "features/upstream/upstream.h"
#include "names/client.h"
#include "settings/loading.h"
#include "support/test.h"
#include "upstream/zone.h"

#include <string.h>

/* Room for as many servers as no zone has. */
#define TEXT_ROOM (400 * 1024)
#define BEGIN "events { } stream { "
#define END " }"
#define LEADS_ANYWHERE " server { listen 127.0.0.1:99; lead $remote_addr; } "
#define SERVER(n, more) "server { listen 127.0.0.1:" #n "; " more " } "

/* A protocol that leads its clients somewhere. */
static int set_lead(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_upstream **upstream = value;

    (void)n;
    *upstream = fb_conf_upstream(conf, "lead", args[0]);
    return *upstream != NULL ? 0 : -1;
}

static const fb_directive directives[] = {
    { .name = "lead",
        .value = FB_VALUE_CUSTOM,
        .flags = FB_DIRECTIVE_HANDLER,
        .room = sizeof(const fb_upstream *),
        .args_least = 1,
        .args_most = 1,
        .set = set_lead },
};

static const fb_ops ops = { .size = sizeof(fb_ops) };

static const fb_protocol lead = {
    FB_PROTOCOL_HEADER,
    .name = "lead",
    FB_PROTOCOL_DIRECTIVES(directives),
    .conf_state = sizeof(const fb_upstream *),
    .ops = &ops,
};

static const fb_protocol *const protocols[] = { &lead, NULL };

static struct loading loading;

static void begin(void)
{
    loading_begin(&loading);
    loading.options.protocols = protocols;
}

static void end(void)
{
    loading_end(&loading);
}

/* Takes the text, in which nothing needs to lead to a group. */
static void take(const char *stream)
{
    static char text[TEXT_ROOM];

    snprintf(text, sizeof(text), BEGIN "%s%s" END, stream,
        strstr(stream, "lead ") == NULL ? LEADS_ANYWHERE : "");
    accept_text(&loading, text, "");
}

/* The message is at the last place of `word`. */
static void refuse(const char *stream, const char *word, const char *message)
{
    static char text[TEXT_ROOM];
    char expected[1024];
    const char *at = NULL, *next = stream;

    while ((next = strstr(next, word)) != NULL)
        at = next++;
    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof(text), BEGIN "%s" END, stream);
    snprintf(expected, sizeof(expected), "%s in /main:1:%zu\n", message,
        strlen(BEGIN) + (size_t)(at - stream) + 1);
    refuse_text(&loading, text, expected);
}

/* Returns where the i-th server leads. */
static const struct fb_upstream *led_to(unsigned i)
{
    return *(const struct fb_upstream *const *)loading_server(&loading, i)->protocol_conf;
}

static unsigned group_n(void)
{
    const struct upstream *upstream;
    unsigned n = 0;

    STAILQ_FOREACH (upstream, &loading.cycle->stream.upstreams, link)
        n++;
    return n;
}

static const struct upstream *first_group(void)
{
    return STAILQ_FIRST(&loading.cycle->stream.upstreams);
}

START_TEST(a_group_is_named_before_and_after_it)
{
    take(SERVER(1, "lead back;") "upstream Back { server 127.0.0.1:9; } " SERVER(2, "lead BACK;"));
    ck_assert_uint_eq(group_n(), 1);
    ck_assert_str_eq(first_group()->name, "Back");
    ck_assert(!first_group()->is_single);
    ck_assert_ptr_eq(led_to(0)->upstream, first_group());
    ck_assert_ptr_eq(led_to(1)->upstream, first_group());
}
END_TEST

START_TEST(an_address_is_one_group_for_all)
{
    take(SERVER(1, "lead 127.0.0.1:9;") SERVER(2, "lead 127.0.0.1:9;")
            SERVER(3, "lead 127.0.0.1:009;") SERVER(4, "lead unix:/X;") SERVER(5, "lead unix:/x;"));
    ck_assert_uint_eq(group_n(), 3);
    ck_assert(first_group()->is_single);
    ck_assert_str_eq(first_group()->name, "127.0.0.1:9");
    ck_assert_ptr_eq(led_to(0)->upstream, led_to(1)->upstream);
    ck_assert_ptr_eq(led_to(0)->upstream, led_to(2)->upstream);
    ck_assert_ptr_ne(led_to(3)->upstream, led_to(4)->upstream);
    ck_assert(loading.cycle->needs.rights & NEEDS_UNIX_TARGETS);
    ck_assert_uint_eq(STAILQ_FIRST(&loading.cycle->needs.ports)->port, 9);
    ck_assert_ptr_null(STAILQ_NEXT(STAILQ_FIRST(&loading.cycle->needs.ports), link));
    ck_assert(!(loading.cycle->needs.rights & FB_NEEDS_CONNECT));
}
END_TEST

START_TEST(a_server_has_the_defaults_of_nginx)
{
    const struct upstream_server *server;
    const struct upstream *group;

    take(
        "upstream a { server 127.0.0.1:9; } " SERVER(1, "lead 127.0.0.1:10;") SERVER(2, "lead a;"));
    STAILQ_FOREACH (group, &loading.cycle->stream.upstreams, link) {
        ck_assert_uint_eq(group->server_n, 1);
        server = STAILQ_FIRST(&group->servers);
        ck_assert_uint_eq(server->weight, 1);
        ck_assert_uint_eq(server->max_conns, 0);
        ck_assert_uint_eq(server->max_fails, 1);
        ck_assert_int_eq(server->fail_timeout, 10000);
        ck_assert_int_eq(server->slow_start, 0);
        ck_assert(!server->backup && !server->down && !server->drain && !server->resolve);
    }
}
END_TEST

START_TEST(parameters_are_set)
{
    const struct upstream_server *server;

    take("upstream a { server 127.0.0.1:9; server [::1]:10 weight=7 max_conns=8 max_fails=9 "
         "fail_timeout=1m slow_start=5s backup down drain resolve; queue 3; zone z 32k; }");
    ck_assert_uint_eq(first_group()->server_n, 2);
    ck_assert_uint_eq(first_group()->queue, 3);
    ck_assert_int_eq(first_group()->queue_timeout, 60000);
    server = STAILQ_NEXT(STAILQ_FIRST(&first_group()->servers), link);
    ck_assert_str_eq(server->target->text, "[::1]:10");
    ck_assert_uint_eq(server->weight, 7);
    ck_assert_uint_eq(server->max_conns, 8);
    ck_assert_uint_eq(server->max_fails, 9);
    ck_assert_int_eq(server->fail_timeout, 60000);
    ck_assert_int_eq(server->slow_start, 5000);
    ck_assert(server->backup && server->down && server->drain && server->resolve);
}
END_TEST

START_TEST(names_are_left_to_the_workers)
{
    const struct upstream_server *server;

    if (!names_client_built())
        return;
    take("upstream a { server no.such.host.invalid:9; server b service=http resolve; } " SERVER(
        1, "lead no.such.host.invalid:10; resolver 127.0.0.7;") SERVER(2, "lead a;"));
    ck_assert_uint_eq(group_n(), 2);
    server = STAILQ_FIRST(&first_group()->servers);
    ck_assert_ptr_null(server->target);
    ck_assert_str_eq(server->host, "no.such.host.invalid");
    ck_assert_uint_eq(server->port, 9);
    ck_assert(!server->resolve);
    ck_assert_str_eq(STAILQ_NEXT(server, link)->service, "http");
    ck_assert_uint_eq(STAILQ_NEXT(server, link)->port, 0);
    ck_assert_ptr_eq(first_group()->resolver, &loading.cycle->stream.system);
    ck_assert_int_eq(first_group()->resolver_timeout, 30000);
    ck_assert_str_eq(led_to(0)->upstream->resolver->servers, "127.0.0.7:53");
    ck_assert(loading.cycle->needs.rights & FB_NEEDS_CONNECT); /* to the ports of SRV records */
    ck_assert_uint_eq(loading.cycle->stream.system.users, NAMES_OF_GROUPS);
}
END_TEST

START_TEST(groups_of_names_differ_by_their_resolvers)
{
    if (!names_client_built())
        return;
    take(SERVER(1, "lead x.invalid:9;") SERVER(2, "lead x.invalid:9;")
            SERVER(3, "lead x.invalid:9; resolver 127.0.0.7;"));
    ck_assert_uint_eq(group_n(), 2);
    ck_assert_ptr_eq(led_to(0)->upstream, led_to(1)->upstream);
    ck_assert_ptr_ne(led_to(0)->upstream, led_to(2)->upstream);
}
END_TEST

START_TEST(a_text_with_variables_is_looked_up_in_each_session)
{
    const struct upstream_conf *conf;

    take(SERVER(1, "lead $remote_addr:9; resolver_timeout 4s;"));
    ck_assert_ptr_null(led_to(0)->upstream);
    ck_assert_ptr_nonnull(led_to(0)->text);
    conf = loading.cycle->stream.features[FEATURE_UPSTREAM];
    ck_assert_ptr_eq(led_to(0)->named, &conf->named);
    ck_assert_ptr_eq(led_to(0)->resolver, &loading.cycle->stream.system);
    ck_assert_int_eq(led_to(0)->resolver_timeout, 4000);
    ck_assert(loading.cycle->needs.rights & FB_NEEDS_CONNECT);
    ck_assert(!(loading.cycle->needs.rights & FB_NEEDS_RESOLVER) == !names_client_built());
}
END_TEST

START_TEST(what_leads_nowhere)
{
    const char *group = "upstream backend { server 127.0.0.1:9; } ";
    char text[256];

    snprintf(text, sizeof(text), "%s%s", group, SERVER(1, "lead bakend;"));
    if (names_client_built()) {
        refuse(text, "bakend", "no port in upstream \"bakend\", did you mean \"backend\"?");
        refuse(SERVER(1, "lead bakend;"), "bakend", "no port in upstream \"bakend\"");
        snprintf(text, sizeof(text), "%s%s", group, SERVER(1, "lead backend:80;"));
        refuse(text, "backend:80", "upstream \"backend\" may not have port 80");
    } else {
        refuse(SERVER(1, "lead a:80;"), "a:80",
            "invalid address \"a:80\": a name needs c-ares, which this build of forkbeard lacks");
    }
    refuse(SERVER(1, "lead 1.2.3:80;"), "1.2.3:80",
        "invalid address \"1.2.3:80\": invalid IPv4 address");
    refuse(SERVER(1, "lead 1.2.3.4;"), "1.2.3.4;", "invalid address \"1.2.3.4\": expected a port");
}
END_TEST

START_TEST(a_block_that_cannot_serve)
{
    refuse("upstream a { }", "upstream", "no servers are inside upstream");
    refuse("upstream a { server 127.0.0.1:9 backup; }", "upstream",
        "no servers in upstream \"a\": each is a \"backup\"");
    refuse("upstream a { server 127.0.0.1:9; } upstream A { server 127.0.0.1:9; }", "A",
        "duplicate upstream \"A\"");
    refuse("upstream \"\" { server 127.0.0.1:9; }", "\"\"",
        "invalid value \"\" in \"upstream\" directive: expected a name");
}
END_TEST

START_TEST(a_balancer_is_not_for_every_parameter)
{
    static const struct {
        const char *balancer, *name;
    } rows[] = { { "hash $pid", "hash" }, { "hash $pid consistent", "hash" },
        { "random", "random" }, { "random two least_conn", "random" } };
    char text[256], message[256];

    for (size_t i = 0; i < countof(rows); i++) {
        snprintf(message, sizeof(message),
            "load balancing method \"%s\" does not support parameter \"backup\"", rows[i].name);
        snprintf(text, sizeof(text),
            "upstream a { server 127.0.0.1:9; %s; server [::1]:9 backup; }", rows[i].balancer);
        refuse(text, "backup", message);
        snprintf(text, sizeof(text), "upstream a { server [::1]:9 backup; server [::1]:10; %s; }",
            rows[i].balancer);
        refuse(text, "backup", message);
        snprintf(message, sizeof(message),
            "load balancing method \"%s\" does not support parameter \"slow_start=3s\"",
            rows[i].name);
        snprintf(text, sizeof(text), "upstream a { %s; server [::1]:9 slow_start=3s; }",
            rows[i].balancer);
        refuse(text, "slow_start=3s", message);
    }
    take("upstream a { least_conn; server [::1]:9 slow_start=3s; server [::1]:8 backup; }");
    take("upstream a { least_time connect; server [::1]:9 slow_start=3s; server [::1]:8 backup; }");
}
END_TEST

START_TEST(groups_share_a_zone)
{
#define ONE "upstream a { server 127.0.0.1:9; zone z"
#define OTHER "upstream b { server 127.0.0.1:9; zone z"
    take(ONE "; } " OTHER " 64k; }");
    ck_assert_ptr_nonnull(first_group()->zone);
    ck_assert_ptr_eq(STAILQ_NEXT(first_group(), link)->zone, first_group()->zone);
    ck_assert_uint_eq(first_group()->zone->shape.size, 65536);
    take(ONE " 64k; } " OTHER " 64k; }");
    refuse(ONE "; } " OTHER "; }", "z; } upstream",
        "zero size shared memory zone \"z\": no group of the zone gives the size");
    refuse(ONE " 64k; } " OTHER " 65k; }", "65k",
        "invalid value \"65k\" in \"zone\" directive: the size 66560 of shared memory zone \"z\" "
        "conflicts with already declared size 65536");
}
END_TEST

/* Writes a group of n servers with a zone of the size, and nothing else. */
static void write_group(
    char *text, size_t room, const char *name, unsigned servers, const char *size)
{
    size_t n = (size_t)snprintf(text, room, "upstream %s { zone z %s; ", name, size);

    for (unsigned i = 0; i < servers; i++)
        n += (size_t)snprintf(text + n, room - n, "server 127.0.0.1:%u; ", i + 1);
    snprintf(text + n, room - n, "} ");
    ck_assert_uint_lt(n + 2, room);
}

START_TEST(a_zone_has_room_for_its_servers)
{
    static char text[TEXT_ROOM - 100];
    size_t n;

    write_group(text, sizeof(text), "a", 51, "32k");
    take(text);
    n = strlen(text);
    write_group(text + n, sizeof(text) - n, "b", 52, "");
    refuse(text, "32k", "zone \"z\" is too small: 103 servers need at least 65k");
    write_group(text, sizeof(text), "a", 51, "65k");
    n = strlen(text);
    write_group(text + n, sizeof(text) - n, "b", 52, "");
    take(text);
    write_group(text, sizeof(text), "a", 16384, "10m");
    take(text);
    write_group(text, sizeof(text), "a", 16385, "1g");
    refuse(text, "1g", "zone \"z\" has 16385 servers, and no zone has room for more than 16384");
}
END_TEST

/* Circles never left by clients are mistakes; a server left by some clients is not. */
START_TEST(a_circle_is_refused)
{
    static const struct {
        const char *text, *where; /* NULL: accepted */
    } cases[] = {
        { SERVER(1, "lead 127.0.0.1:1;"), "127.0.0.1:1" },
        { SERVER(1, "lead 127.0.0.1:2;"), NULL },
        { "server { listen 1; lead 127.0.0.1:1; }", "127.0.0.1:1" },
        { "server { listen 1; lead 127.9.9.9:1; }", "127.9.9.9:1" },
        { "server { listen 1; lead 0.0.0.0:1; }", "0.0.0.0:1" },
        { "server { listen 1; lead 192.0.2.1:1; }", NULL }, /* perhaps another machine's */
        { "server { listen 192.0.2.1:1; lead 192.0.2.1:1; }", "192.0.2.1:1" },
        { "server { listen [::]:1 ipv6only=off; lead 127.0.0.1:1; }", "127.0.0.1:1" },
        { "server { listen [::]:1 ipv6only=on; lead 127.0.0.1:1; }", NULL },
        { "server { listen [::]:1; lead [::1]:1; }", "[::1]:1" },
        { "server { listen unix:/tmp/a; lead unix:/tmp/a; }", "unix:/tmp/a" },
        { SERVER(1, "lead 127.0.0.1:2;") SERVER(2, "lead 127.0.0.1:3;"), NULL },
        { SERVER(1, "lead 127.0.0.1:2;") SERVER(2, "lead $pid;"), NULL },
        { "upstream a { server 127.0.0.1:1; server 127.0.0.1:1 backup; }" SERVER(1, "lead a;"),
            "a" },
        { SERVER(1, "lead a;") "upstream a { server 127.0.0.1:1; server 127.0.0.1:2; }", NULL },
        { "upstream a { server 127.0.0.1:1; server 127.0.0.1:2 down; }" SERVER(1, "lead a;"), "a" },
        { SERVER(1, "lead a;") "upstream a { server 127.0.0.1:1; server a.test:2 resolve; }",
            NULL },
    };
    char text[512];

    snprintf(text, sizeof(text), "resolver 127.0.0.1:53; %s", cases[_i].text);
    if (cases[_i].where == NULL) {
        take(text);
    } else {
        char message[128];

        snprintf(message, sizeof(message),
            "\"%s\" leads clients in a circle of this configuration's own servers",
            cases[_i].where);
        refuse(text, cases[_i].where, message);
    }
}
END_TEST

START_TEST(a_circle_of_several_is_refused)
{
    static const char text[] =
        BEGIN SERVER(1, "lead 127.0.0.1:2;") SERVER(2, "lead 127.0.0.1:1;") END;

    refuse_text(&loading, text,
        "\"127.0.0.1:2\" leads clients in a circle of this configuration's own servers in "
        "/main:1:55\n"
        "\"127.0.0.1:1\" leads clients in a circle of this configuration's own servers in "
        "/main:1:104\n");
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_group_is_named_before_and_after_it);
    tcase_add_test(tcase, an_address_is_one_group_for_all);
    tcase_add_test(tcase, a_server_has_the_defaults_of_nginx);
    tcase_add_test(tcase, parameters_are_set);
    tcase_add_test(tcase, names_are_left_to_the_workers);
    tcase_add_test(tcase, groups_of_names_differ_by_their_resolvers);
    tcase_add_test(tcase, a_text_with_variables_is_looked_up_in_each_session);
    tcase_add_test(tcase, what_leads_nowhere);
    tcase_add_test(tcase, a_block_that_cannot_serve);
    tcase_add_test(tcase, a_balancer_is_not_for_every_parameter);
    tcase_add_test(tcase, groups_share_a_zone);
    tcase_add_test(tcase, a_zone_has_room_for_its_servers);
    tcase_add_test(tcase, a_circle_of_several_is_refused);
    tcase_add_loop_test(tcase, a_circle_is_refused, 0, 17);
}

TEST_MAIN("upstream", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The server that a ClientHello chooses by its name, among those of a configuration's address. */
#include "base/compiler.h"
#include "features/hello.h"
#include "features/server_name/server_name.h"
#include "session/conn.h"
#include "settings/loading.h"
#include "support/fixture.h"
#include "support/regex_built.h"
#include "support/test.h"
#include "tls/hello.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct row {
    const char *name; /* NULL: no extension */
    unsigned server;  /* from 1 on */
};

struct choice {
    struct binding *binding;
    const struct row *rows;
    unsigned n;
    const char *site; /* value of $site in the end; NULL: not looked at */
    const char *logged;
};

static struct loading loading;

/* Returns a ClientHello with the name. */
static struct hello ask_for(const char *name, size_t n)
{
    char extension[9 + 300] = { 0, 0, (char)((n + 5) >> 8), (char)(n + 5), (char)((n + 3) >> 8),
        (char)(n + 3), 0, (char)(n >> 8), (char)n };

    ck_assert_uint_le(n, 300);
    if (name == NULL)
        return hello_of("", 0);
    memcpy(extension + 9, name, n);
    return hello_of(extension, 9 + n);
}

static unsigned number_of(const struct server *wanted)
{
    const struct server *server;
    unsigned number = 1;

    STAILQ_FOREACH (server, &loading.cycle->stream.servers, link) {
        if (server == wanted)
            return number;
        number++;
    }
    return 0;
}

static int choose(struct fb_conn *conn, const struct hello *message)
{
    struct tls_hello hello = { .status = TLS_HELLO_MORE };
    fb_bytes in = { message->p, message->n };

    ck_assert_int_eq(tls_hello_parse(&hello, in), TLS_HELLO_WHOLE);
    return server_name_choose(conn, &hello, in);
}

static void check_site(struct fb_conn *conn, const char *expected)
{
    struct cycle *cycle = loading.cycle;
    struct variable *variable = variables_add(cycle->stream.variables, cycle->arena, "site", 4);
    const struct value *value = variable_value(conn, variable);

    ck_assert_uint_eq(value->n, strlen(expected));
    ck_assert_mem_eq(value->p, expected, value->n);
}

static unsigned choose_each(struct fb_conn *conn, const void *arg)
{
    const struct choice *choice = arg;
    void *owner = conn->owner;

    for (unsigned i = 0; i < choice->n; i++) {
        const struct row *row = &choice->rows[i];
        struct hello hello = ask_for(row->name, row->name != NULL ? strlen(row->name) : 0);

        conn->owner = choice->binding;
        ck_assert_int_eq(choose(conn, &hello), 0);
        ck_assert_msg(number_of(session_server_of(conn)) == row->server, "%s: %u",
            row->name != NULL ? row->name : "none", number_of(session_server_of(conn)));
    }
    if (choice->site != NULL)
        check_site(conn, choice->site);
    conn->owner = owner;
    return 0;
}

/* Loads the servers of an address, of which the first is the default where none is marked, and lets
 * a client come. */
static void serve_client(const char *servers,
    unsigned (*run)(struct fb_conn *conn, const void *arg), struct choice *choice)
{
    char text[4096];
    const struct listener *listener;
    struct phase_handler handler = { .phase = PHASE_ACCESS, .run = run, .arg = choice };
    struct fixture *fixture;

    loading_begin(&loading);
    snprintf(text, sizeof(text), "events { } stream { %s }", servers);
    accept_text(&loading, text, "");
    listener = STAILQ_FIRST(&loading.cycle->stream.listeners.list);
    choice->binding = STAILQ_FIRST(&((const struct port *)listener->owner)->bindings);
    fixture = fixture_start_stream(2);
    fixture->server.server.variables = loading.cycle->stream.variables;
    fixture->server.server.before = &handler;
    scripted_connect(fixture);
    fixture_run(fixture);
    ck_assert_str_eq(fixture_logged(fixture), choice->logged);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
    loading_end(&loading);
}

static void expect_servers(
    const char *servers, const struct row *rows, unsigned n, const char *site)
{
    serve_client(servers, choose_each,
        &(struct choice) { .rows = rows, .n = n, .site = site, .logged = "" });
}

#define EXPECT(servers, ...)                                                                       \
    expect_servers(servers, (const struct row[]) { __VA_ARGS__ },                                  \
        countof(((const struct row[]) { __VA_ARGS__ })), NULL)

START_TEST(the_longest_name_counts)
{
    EXPECT("server { listen 1; ssl_preread on; server_name a.test; } "
           "server { listen 1; server_name *.test w.a.test; } "
           "server { listen 1; server_name *.a.test; } "
           "server { listen 1; server_name x.*; } server { listen 1; server_name x.a.*; } "
           "server { listen 1; server_name .dot.net; }",
        { "a.test", 1 }, { "w.a.test", 2 }, { "b.test", 2 }, { "v.a.test", 3 }, { "u.v.a.test", 3 },
        /* ends come before beginnings */ { "x.test", 2 }, { "x.com", 4 }, { "x.y.com", 4 },
        { "x.a.com", 5 }, { "dot.net", 6 }, { "a.dot.net", 6 }, { "adot.net", 1 }, { "test", 1 },
        { "x", 1 });
}
END_TEST

#define TWO                                                                                        \
    "server { listen 1; ssl_preread on; server_name a.test; } "                                    \
    "server { listen 1; server_name b.test 192.0.2.1 *.1 ::1 *.c; } "

START_TEST(other_names_have_the_default_server)
{
    EXPECT(TWO, { "b.test", 2 }, { NULL, 1 }, { "", 1 }, { "c.test", 1 }, { "b.test.c.d", 1 });
    EXPECT("server { listen 1; server_name b.test; } "
           "server { listen 1 default_server; ssl_preread on; server_name a.test; }",
        { "b.test", 1 }, { "a.test", 2 }, { NULL, 2 }, { "c.test", 2 });
}
END_TEST

START_TEST(names_are_compared_as_nginx_does)
{
    EXPECT(TWO, { "B.tEST", 2 }, { "b.test.", 2 }, { "b.test..", 1 }, { "b..c", 1 },
        { "b.test:443", 2 }, { "b.test.:443", 2 }, { "a b.c", 1 }, { "a\x7f.c", 1 },
        { "a\x80.c", 2 }, { "a/b.c", 1 }, { ".", 1 }, { ":", 1 }, { "[b.c", 1 });
}
END_TEST

START_TEST(an_address_is_no_name)
{
    EXPECT(TWO, { "192.0.2.1", 1 }, { "192.0.2.1.", 1 }, { "192.0.2.1:443", 1 }, { "::1", 1 },
        { "[::1]", 1 }, { "2.0.2.1", 1 }, { "192.0.2.300.1", 2 });
}
END_TEST

START_TEST(a_name_has_255_bytes_at_most)
{
    char longest[255 + 1], longer[256 + 1];
    const struct row rows[] = { { longest, 2 }, { longer, 1 } };

    memset(longest, 'a', 255);
    memcpy(longest + 253, ".c", 3);
    memset(longer, 'a', 256);
    memcpy(longer + 254, ".c", 3);
    expect_servers(TWO, rows, countof(rows), NULL);
}
END_TEST

#define EXPRESSIONS                                                                                \
    "server { listen 1; ssl_preread on; server_name a.test ~^z; return $site; } "                  \
    "server { listen 1; server_name ~^(?<site>a.)(.*)$ b.test; } "                                 \
    "server { listen 1; server_name ~^a *.net; } "

START_TEST(expressions_match_in_order)
{
    static const struct {
        struct row row;
        const char *site;
    } rows[] = {
        { { "b.test", 2 }, "" },
        { { "a.test", 1 }, "" },
        { { "a.net", 3 }, "" },
        { { "AB.com", 2 }, "ab" },
        { { "zz", 1 }, "" },
        { { "a", 3 }, "" },
        { { "c", 1 }, "" },
    };

    if (!regex_built()) {
        printf("this build has no regular expressions\n");
        return;
    }
    expect_servers(EXPRESSIONS, &rows[_i].row, 1, rows[_i].site);
}
END_TEST

START_TEST(a_single_server_has_captures)
{
    static const struct row row = { "one.test", 1 };

    if (regex_built())
        expect_servers("server { listen 1; ssl_preread on; server_name ~^(?<site>[^.]+); "
                       "return $site; }",
            &row, 1, "one");
}
END_TEST

/* Chooses with ever more memory, until there is enough for the captures. */
static unsigned choose_in_little_memory(struct fb_conn *conn, const void *arg)
{
    struct fixture *fixture = fixture_of(&conn->net->loop);
    const struct choice *choice = arg;
    struct hello hello = ask_for("ab.test", 7);
    void *owner = conn->owner;
    int status = -1;

    conn->owner = choice->binding;
    for (unsigned n = 0; status == -1; n++) {
        ck_assert_uint_lt(n, 10);
        fixture->memory.until_failure = n;
        status = choose(conn, &hello);
        ck_assert_int_eq(status, n == 0 ? -1 : status);
        ck_assert_uint_eq(number_of(session_server_of(conn)), status == -1 ? 1 : 2);
    }
    fixture->memory.until_failure = UINT_MAX;
    conn->owner = owner;
    return 0;
}

#define NO_MEMORY                                                                                  \
    "t: [info] *1 client disconnected, bytes from/to client:0/0, session time: 0.000, reason: no " \
    "memory, client: 192.0.2.1, server: 192.0.2.7:77\n"

START_TEST(captures_need_memory)
{
    if (regex_built())
        serve_client(
            EXPRESSIONS, choose_in_little_memory, &(struct choice) { .logged = NO_MEMORY });
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, the_longest_name_counts);
    tcase_add_test(tcase, other_names_have_the_default_server);
    tcase_add_test(tcase, names_are_compared_as_nginx_does);
    tcase_add_test(tcase, an_address_is_no_name);
    tcase_add_test(tcase, a_name_has_255_bytes_at_most);
    tcase_add_loop_test(tcase, expressions_match_in_order, 0, 7);
    tcase_add_test(tcase, a_single_server_has_captures);
    tcase_add_test(tcase, captures_need_memory);
}

TEST_MAIN("server_name", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables and texts of sessions, and the phases around a protocol. */
#include "session/conn.h"
#include "support/fixture.h"
#include "support/server_defaults.h"
#include "text/template.h"
#include "text/variable.h"

#include <string.h>

/* Variables allowed in a test: all are used before the session begins. */
static const char *const names[] = { "remote_addr", "remote_port", "binary_remote_addr",
    "server_addr", "server_port", "bytes_received", "bytes_sent", "connection", "session_time",
    "status", "protocol", "hostname", "nginx_version", "counted", "missing", "itself" };

static struct variables_test {
    struct fixture *fixture;
    struct arena *arena;
    struct variables variables;
    struct variable *used[countof(names)];
    struct phase_handler before, log;
    unsigned logged, counted;
    void (*look)(struct fb_conn *conn);
} test;

static struct variable *find(const char *name)
{
    for (size_t i = 0; i < countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return test.used[i];
    ck_abort_msg("no variable %s", name);
}

static int get_counted(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    ck_assert_ptr_eq(variable, find("counted"));
    return value_printf(conn, value, "%u", ++test.counted);
}

static int get_missing(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    (void)conn;
    (void)variable;
    *value = value_missing();
    return 0;
}

static int get_itself(struct fb_conn *conn, const struct variable *variable, struct value *value)
{
    const struct value *own = variable_value(conn, variable);

    return value_printf(conn, value, "%d", own->state == VALUE_MISSING);
}

static unsigned log_session(struct fb_conn *conn, const void *arg)
{
    ck_assert_ptr_eq(arg, &test);
    test.logged++;
    ck_assert_uint_eq(test.fixture->server.record.closings, 0);
    if (test.look != NULL)
        test.look(conn);
    return 0;
}

static void begin(void (*look)(struct fb_conn *conn))
{
    struct server *server;

    memset(&test, 0, sizeof(test));
    test.look = look;
    test.arena = arena_create();
    ck_assert_ptr_nonnull(test.arena);
    RB_INIT(&test.variables.all);
    test.variables.tables = variable_tables();
    test.variables.hostname = arena_strdup(test.arena, "host");
    for (size_t i = 0; i < countof(names); i++) {
        test.used[i] = variables_add(&test.variables, test.arena, names[i], strlen(names[i]));
        ck_assert_ptr_nonnull(test.used[i]);
        variables_use(&test.variables, test.used[i], NULL);
    }
    ck_assert_ptr_null(find("counted")->get);
    find("counted")->get = get_counted;
    find("missing")->get = get_missing;
    find("itself")->get = get_itself;
    test.log = (struct phase_handler) { .phase = PHASE_LOG, .run = log_session, .arg = &test };
    test.fixture = fixture_start_stream(2);
    server = &test.fixture->server.server;
    server->variables = &test.variables;
    server->after = &test.log;
}

static void end(void)
{
    scripted_end_sessions(test.fixture);
    ck_assert_uint_eq(test.logged, 1);
    fixture_stop(test.fixture);
    arena_destroy(&test.arena);
}

static void expect(struct fb_conn *conn, const char *name, const char *text)
{
    const struct value *value = variable_value(conn, find(name));

    ck_assert_msg(value->state == VALUE_FOUND && value->n == strlen(text) &&
                      memcmp(value->p, text, value->n) == 0,
        "$%s is \"%.*s\"", name, (int)value->n, value->p);
}

static void look_at_session(struct fb_conn *conn)
{
    const struct value *value = variable_value(conn, find("binary_remote_addr"));

    expect(conn, "remote_addr", "192.0.2.1");
    expect(conn, "remote_port", "1234");
    expect(conn, "server_addr", "192.0.2.7");
    expect(conn, "server_port", "77");
    expect(conn, "bytes_received", "5");
    expect(conn, "bytes_sent", "5");
    expect(conn, "connection", "1");
    expect(conn, "session_time", "2.007");
    expect(conn, "status", "200");
    expect(conn, "protocol", "TCP");
    expect(conn, "hostname", "host");
    expect(conn, "nginx_version", BUILD_VERSION);
    ck_assert_uint_eq(value->n, 4);
    ck_assert_mem_eq(value->p, "\xc0\x00\x02\x01", 4);
}

/* Handlers before the protocol see a session without status yet. */
static unsigned look_before(struct fb_conn *conn, const void *arg)
{
    (void)arg;
    expect(conn, "status", "000");
    expect(conn, "bytes_received", "0");
    return 0;
}

START_TEST(a_session_is_known_to_its_log)
{
    struct sim_socket *client;

    begin(look_at_session);
    test.before = (struct phase_handler) { .phase = PHASE_ACCESS, .run = look_before };
    test.fixture->server.server.before = &test.before;
    test.fixture->server.script.data = scripted_echo;
    client = scripted_connect(test.fixture);
    sim_says(client, "hello");
    fixture_run(test.fixture);
    fixture_pass(test.fixture, 2007);
    sim_end(client);
    fixture_run(test.fixture);
    end();
}
END_TEST

static void look_at_kept(struct fb_conn *conn)
{
    struct value other = value_found("other", 5);

    expect(conn, "counted", "1");
    expect(conn, "counted", "1");
    find("counted")->flags |= VARIABLE_VOLATILE;
    expect(conn, "counted", "2");
    expect(conn, "counted", "3");
    find("counted")->flags = 0;
    variable_set(conn, find("counted"), other);
    expect(conn, "counted", "other");
    ck_assert_uint_eq(test.counted, 3);
    expect(conn, "itself", "1");
    ck_assert_ptr_nonnull(strstr(fixture_logged(test.fixture),
        "[error] *1 cycle while evaluating variable \"itself\", client: 192.0.2.1"));
    ck_assert_ptr_eq(
        variables_add(&test.variables, test.arena, "Remote_ADDR", 11), find("remote_addr"));
}

START_TEST(a_value_is_worked_out_once)
{
    begin(look_at_kept);
    scripted_connect(test.fixture);
    end();
}
END_TEST

static void expect_text(
    struct fb_conn *conn, const struct template_part *parts, unsigned n, const char *text)
{
    struct template template = { .parts = parts, .part_n = n };
    struct value value;

    ck_assert_int_eq(template_value(conn, &template, &value), 0);
    ck_assert_uint_eq(value.n, strlen(text));
    ck_assert_mem_eq(value.p, text, value.n);
}

static void look_at_texts(struct fb_conn *conn)
{
    static struct captures captures;
    struct template_part parts[] = { { .text = value_found("from ", 5) },
        { .variable = find("remote_addr") }, { .variable = find("missing") }, { .capture = 2 } };

    expect_text(conn, parts, 0, "");
    expect_text(conn, parts, 1, "from ");
    expect_text(conn, parts, 4, "from 192.0.2.1");
    captures.at[2] = value_found("!", 1);
    captures_set(conn, &captures);
    expect_text(conn, parts, 4, "from 192.0.2.1!");
    expect_text(conn, parts + 2, 1, "");
}

START_TEST(a_text_has_variables)
{
    begin(look_at_texts);
    scripted_connect(test.fixture);
    end();
}
END_TEST

static unsigned refuse_session(struct fb_conn *conn, const void *arg)
{
    (void)conn;
    (void)arg;
    return STATUS_FORBIDDEN;
}

static void look_at_refused(struct fb_conn *conn)
{
    expect(conn, "status", "403");
    expect(conn, "bytes_sent", "0");
}

/* Neither `opened` nor `closed` of the protocol runs, whether or not it has a state. */
START_TEST(a_handler_ends_a_session)
{
    struct sim_socket *client;

    begin(look_at_refused);
    if (_i == 1)
        test.fixture->server.protocol.conn_state = 0;
    test.before = (struct phase_handler) { .phase = PHASE_ACCESS, .run = refuse_session };
    test.fixture->server.server.before = &test.before;
    client = scripted_connect(test.fixture);
    ck_assert(client->closed && !client->reset);
    ck_assert_uint_eq(test.fixture->server.record.openings, 0);
    ck_assert_uint_eq(test.fixture->server.record.closings, 0);
    end();
}
END_TEST

static void look_without_memory(struct fb_conn *conn)
{
    test.fixture->memory.until_failure = 0;
    ck_assert_int_eq(variable_value(conn, find("remote_addr"))->state, VALUE_MISSING);
    test.fixture->memory.until_failure = UINT_MAX;
}

START_TEST(without_memory_a_value_is_missing)
{
    begin(look_without_memory);
    scripted_connect(test.fixture);
    end();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_session_is_known_to_its_log);
    tcase_add_test(tcase, a_value_is_worked_out_once);
    tcase_add_test(tcase, a_text_has_variables);
    tcase_add_loop_test(tcase, a_handler_ends_a_session, 0, 2);
    tcase_add_test(tcase, without_memory_a_value_is_missing);
}

TEST_MAIN("variables", add_tests)

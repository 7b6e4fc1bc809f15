/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface "stream": variables that a protocol reads, sets and defines, texts with variables,
 * the outcome and the bytes of the log. */
#include "sdk/scripted_conn.h"

#include "net/address_parse.h"
#include "text/template.h"

#include <string.h>

struct talk_conf {
    const fb_template *text, *made;
    const fb_variable *asked, *name;
};

enum { TALK_NAME, TALK_LINES, TALK_CALLS, TALK_NEVER, TALK_ITSELF };

static struct talk_test {
    const fb_stream *stream;
    fb_conn *conn;
    unsigned closings;
    unsigned calls[8]; /* of `value` */
    int64_t lines;
    char text[64]; /* the latest finding; "-": not found */
    char logged[64];
    void (*opened)(fb_conn *conn);
    void (*closed)(fb_conn *conn);
} test;

/* ---- The protocol ---- */

static const char *kept_text(fb_conn *conn, int64_t n)
{
    char *text = fb_alloc(conn, 24);

    ck_assert_ptr_nonnull(text);
    snprintf(text, 24, "%d", (int)n);
    return text;
}

static int value_of(fb_conn *conn, void *state, uint32_t variable, fb_bytes *out)
{
    const char *text = kept_text(conn, variable == TALK_LINES ? test.lines : 0);
    const struct talk_conf *conf = fb_conf_of(conn);

    ck_assert_ptr_eq(state, fb_state_of(conn));
    test.calls[variable]++;
    if (variable == TALK_NEVER)
        return 1;
    if (variable == TALK_ITSELF)
        return test.stream->get(conn, conf->asked, out);
    if (variable == TALK_CALLS)
        text = kept_text(conn, test.calls[variable]);
    *out = (fb_bytes) { (const uint8_t *)text, strlen(text) };
    return 0;
}

static const fb_variable_definition variables[] = {
    [TALK_NAME] = { .name = "talk_name" },
    [TALK_LINES] = { .name = "talk_lines", .value = value_of },
    [TALK_CALLS] = { .name = "talk_calls", .flags = FB_VARIABLE_VOLATILE, .value = value_of },
    [TALK_NEVER] = { .name = "talk_never", .value = value_of },
    [TALK_ITSELF] = { .name = "talk_itself", .value = value_of },
};

static int talk_worker_start(fb_worker *worker, void *state)
{
    (void)state;
    ck_assert_ptr_null(fb_interface(worker, "stream", 2));
    ck_assert_ptr_null(fb_interface(worker, "steam", 1));
    test.stream = fb_interface(worker, "stream", 1);
    ck_assert_uint_eq(test.stream->size, sizeof(fb_stream));
    return 0;
}

static int talk_opened(fb_conn *conn, void *state)
{
    (void)state;
    test.conn = conn;
    if (test.opened != NULL)
        test.opened(conn);
    return 0;
}

static void talk_closed(fb_conn *conn, void *state, fb_reason reason)
{
    (void)state;
    (void)reason;
    test.closings++;
    if (test.closed != NULL)
        test.closed(conn);
}

static int set_asked(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_variable **asked = value;

    ck_assert_uint_eq(n, 1);
    *asked = fb_conf_variable(conf, "talk_asks", args[0]);
    return *asked != NULL ? 0 : -1;
}

static int talk_conf_done(fb_conf *conf, void *value, const void *parent)
{
    struct talk_conf *own = value;

    (void)parent;
    own->name = fb_conf_variable(conf, NULL, "talk_name");
    own->made = fb_conf_template(conf, "talk", "made for $talk_name");
    return own->name != NULL && own->made != NULL ? 0 : -1;
}

#define AT(member) .offset = offsetof(struct talk_conf, member)

static const fb_directive directives[] = {
    { .name = "talk", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "talk_text", .value = FB_VALUE_TEMPLATE, AT(text), .initial = "<$talk_name>" },
    { .name = "talk_asks",
        .value = FB_VALUE_CUSTOM,
        AT(asked),
        .room = sizeof(const fb_variable *),
        .initial = "remote_addr",
        .set = set_asked,
        .args_least = 1,
        .args_most = 1 },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .opened = talk_opened, .closed = talk_closed };

static const fb_protocol talk = {
    FB_PROTOCOL_HEADER,
    .name = "talk",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_VARIABLES(variables),
    .conn_state = 8,
    .conf_state = sizeof(struct talk_conf),
    .ops = &ops,
    .conf_done = talk_conf_done,
    .worker_start = talk_worker_start,
};

/* ---- The tests ---- */

static fb_test *start(const char *server)
{
    fb_test *made;

    memset(&test, 0, sizeof(test));
    made = fb_test_start(&talk, server);
    ck_assert_ptr_nonnull(made);
    return made;
}

static void connect_client(fb_test *worker)
{
    fb_test_connect(worker);
    fb_test_run(worker);
    ck_assert_ptr_nonnull(test.conn);
}

static void note(char text[64], int result, fb_bytes value)
{
    ck_assert(result == 0 || value.n == 0);
    snprintf(text, 64, "%.*s", (int)value.n, (const char *)value.p);
    if (result == -1)
        strcpy(text, "-");
}

/* Finds what `talk_asks` names. */
static const char *asked(fb_conn *conn)
{
    const struct talk_conf *conf = fb_conf_of(conn);
    fb_bytes value;
    int result = test.stream->get(conn, conf->asked, &value);

    note(test.text, result, value);
    return test.text;
}

static const char *evaluated(fb_conn *conn, const fb_template *text)
{
    fb_bytes value;
    int result = test.stream->evaluate(conn, text, &value);

    note(test.text, result, value);
    return test.text;
}

static const char *text_of(fb_conn *conn)
{
    return evaluated(conn, ((const struct talk_conf *)fb_conf_of(conn))->text);
}

static int set(fb_conn *conn, const fb_variable *variable, const char *text)
{
    return test.stream->set(conn, variable, (fb_bytes) { (const uint8_t *)text, strlen(text) });
}

static int set_name(fb_conn *conn, const char *text)
{
    return set(conn, ((const struct talk_conf *)fb_conf_of(conn))->name, text);
}

START_TEST(variables_are_read)
{
    static const struct {
        const char *server, *value;
    } cases[] = {
        { "talk;", "192.0.2.1" },
        { "talk; talk_asks $server_port;", "80" },
        { "talk; talk_asks talk_lines;", "0" },
        { "talk; talk_asks talk_never;", "-" },
        { "talk; talk_asks talk_itself;", "-" },
        { "talk; talk_asks talk_name;", "-" },
    };
    fb_test *worker = start(cases[_i].server);

    connect_client(worker);
    ck_assert_str_eq(asked(test.conn), cases[_i].value);
    scripted_finish(&worker);
}
END_TEST

START_TEST(values_are_kept_unless_they_are_volatile)
{
    fb_test *worker = start("talk; talk_text \"$talk_lines $talk_calls $talk_never.\";");

    connect_client(worker);
    ck_assert_str_eq(text_of(test.conn), "0 1 .");
    test.lines = 5;
    ck_assert_str_eq(text_of(test.conn), "0 2 .");
    ck_assert_uint_eq(test.calls[TALK_LINES], 1);
    ck_assert_uint_eq(test.calls[TALK_NEVER], 1);
    scripted_finish(&worker);
}
END_TEST

START_TEST(a_protocol_sets_its_own)
{
    fb_test *worker = start("talk;");
    char name[] = "ann";

    connect_client(worker);
    ck_assert_str_eq(text_of(test.conn), "<>");
    ck_assert_int_eq(set_name(test.conn, name), 0);
    name[0] = 'x';
    ck_assert_str_eq(text_of(test.conn), "<ann>");
    ck_assert_str_eq(evaluated(test.conn, ((const struct talk_conf *)fb_conf_of(test.conn))->made),
        "made for ann");
    ck_assert_int_eq(test.stream->set(test.conn,
                         ((const struct talk_conf *)fb_conf_of(test.conn))->name, (fb_bytes) { 0 }),
        0);
    ck_assert_str_eq(text_of(test.conn), "<>");
    scripted_finish(&worker);
}
END_TEST

START_TEST(it_sets_no_others)
{
    static const char *const servers[] = { "talk;", "talk; talk_asks $status;",
        "talk; talk_asks talk_calls;" };
    fb_test *worker = start(servers[_i]);
    char before[64];

    connect_client(worker);
    strcpy(before, _i == 2 ? "2" : asked(test.conn));
    ck_assert_int_eq(
        set(test.conn, ((const struct talk_conf *)fb_conf_of(test.conn))->asked, "other"), -1);
    ck_assert_str_eq(_i == 2 ? (asked(test.conn), asked(test.conn)) : asked(test.conn), before);
    scripted_finish(&worker);
}
END_TEST

START_TEST(the_outcome_and_bytes_are_the_logs)
{
    fb_test *worker = start("talk; talk_text \"$status $bytes_received $bytes_sent\";");

    connect_client(worker);
    ck_assert_str_eq(text_of(test.conn), "000 0 0");
    ck_assert_uint_eq(test.stream->status(test.conn), 0);
    ck_assert_int_eq(test.stream->set_status(test.conn, 403), 0);
    ck_assert_uint_eq(test.stream->status(test.conn), 403);
    test.stream->count(test.conn, 10, 0);
    test.stream->count(test.conn, 1, 20);
    fb_write(test.conn, "abc", 3);
    scripted_settle(worker);
    ck_assert_str_eq(text_of(test.conn), "403 11 23");
    ck_assert_uint_eq(fb_received(test.conn), 0);
    ck_assert_uint_eq(fb_sent(test.conn), 3);
    ck_assert_int_eq(test.stream->set_status(test.conn, 599), 0);
    scripted_finish(&worker);
}
END_TEST

static void look_closed(fb_conn *conn)
{
    ck_assert_str_eq(text_of(conn), "bob 5");
}

static unsigned log_session(struct fb_conn *conn, const void *arg)
{
    struct value value;

    (void)arg;
    ck_assert_uint_eq(test.closings, 0);
    ck_assert_int_eq(
        template_value(conn,
            (const struct template *)((const struct talk_conf *)fb_conf_of(conn))->text, &value),
        0);
    note(test.logged, 0, (fb_bytes) { (const uint8_t *)value.p, value.n });
    return 0;
}

static struct server *server_of(fb_test *worker)
{
    return STAILQ_FIRST(&worker->workers[0].cycle->stream.servers);
}

START_TEST(the_log_comes_before_closed)
{
    fb_test *worker = start("talk; talk_text \"$talk_name $talk_lines\";");
    struct phase_handler log = { .phase = PHASE_LOG, .run = log_session };

    server_of(worker)->after = &log;
    test.closed = look_closed;
    connect_client(worker);
    ck_assert_int_eq(set_name(test.conn, "bob"), 0);
    test.lines = 5;
    fb_close(test.conn);
    scripted_settle(worker);
    ck_assert_uint_eq(test.closings, 1);
    ck_assert_str_eq(test.logged, "bob 5");
    ck_assert_uint_eq(test.calls[TALK_LINES], 1);
    scripted_finish(&worker);
}
END_TEST

/* Before the protocol has the client its variables are not known yet. */
static unsigned look_early(struct fb_conn *conn, const void *refuses)
{
    ck_assert_str_eq(text_of(conn), " 192.0.2.1");
    ck_assert_uint_eq(test.calls[TALK_LINES], 0);
    return refuses != NULL ? STATUS_FORBIDDEN : 0;
}

START_TEST(a_handler_before_it_finds_nothing)
{
    fb_test *worker = start("talk; talk_text \"$talk_lines $remote_addr\";");
    struct phase_handler access = { .phase = PHASE_ACCESS, .run = look_early };
    struct phase_handler log = { .phase = PHASE_LOG, .run = log_session };

    access.arg = _i == 1 ? worker : NULL;
    server_of(worker)->before = &access;
    server_of(worker)->after = &log;
    fb_test_connect(worker);
    fb_test_run(worker);
    if (_i == 0) {
        ck_assert_str_eq(text_of(test.conn), "0 192.0.2.1");
        fb_close(test.conn);
        scripted_settle(worker);
    }
    ck_assert_str_eq(test.logged, _i == 0 ? "0 192.0.2.1" : " 192.0.2.1");
    ck_assert_uint_eq(test.closings, _i == 0);
    scripted_finish(&worker);
}
END_TEST

/* Nor does a client have values whose PROXY header never becomes whole. */
START_TEST(a_client_without_its_header_has_no_values)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = "talk;",
        .listen = "proxy_protocol",
        .log_format = "$talk_lines $status",
    };
    fb_test *worker;
    fb_test_peer *peer;

    memset(&test, 0, sizeof(test));
    worker = fb_test_start_with(&talk, &options);
    ck_assert_ptr_nonnull(worker);
    peer = fb_test_connect(worker);
    if (_i == 0)
        fb_test_say(peer, "hello", 5);
    else
        fb_test_pass(worker, 31000);
    scripted_settle(worker);
    ck_assert_uint_eq(test.calls[TALK_LINES], 0);
    ck_assert_str_eq(fb_test_access_log(worker), _i == 0 ? "- 400\n" : "- 200\n");
    scripted_finish(&worker);
}
END_TEST

/* A connection to a server belongs to the session of its client. */
static const fb_ops server_ops = { .size = sizeof(fb_ops), .opened = talk_opened };

START_TEST(a_connection_to_a_server_finds_the_same)
{
    fb_test *worker = start("talk; talk_text \"$talk_name $remote_addr $status\";");
    const fb_connect_options options = { .size = sizeof(options) };
    fb_target target;
    fb_conn *client, *server, *own;

    connect_client(worker);
    client = test.conn;
    fb_test_serve(worker, SERVER, FB_TEST_ACCEPTS);
    ck_assert_ptr_null(target_parse(SERVER, false, &target));
    server = fb_connect(client, &target, &server_ops, NULL);
    own = fb_connect_with(fb_test_worker(worker), &target, &server_ops, NULL, &options);
    scripted_settle(worker);
    ck_assert_int_eq(test.stream->set_status(server, 502), 0);
    test.stream->count(server, 1, 1);
    ck_assert_str_eq(
        evaluated(server, ((const struct talk_conf *)fb_conf_of(client))->text), " 192.0.2.1 502");
    ck_assert_uint_eq(test.stream->status(client), 502);
    ck_assert_int_eq(test.stream->set_status(own, 502), -1);
    ck_assert_uint_eq(test.stream->status(own), 0);
    test.stream->count(own, 1, 1);
    ck_assert_str_eq(evaluated(own, ((const struct talk_conf *)fb_conf_of(client))->text), "-");
    scripted_finish(&worker);
}
END_TEST

static const fb_ops other_ops = { .size = sizeof(fb_ops), .closed = talk_closed };

START_TEST(the_state_is_the_first_one)
{
    fb_test *worker = start("talk;  talk_text $talk_lines;");
    void *state;

    connect_client(worker);
    state = fb_state_of(test.conn);
    ck_assert_int_eq(fb_become(test.conn, &other_ops, state), 0);
    ck_assert_str_eq(text_of(test.conn), "0");
    scripted_finish(&worker);
}
END_TEST

START_TEST(without_memory_nothing_is_found)
{
    fb_test *worker = start("talk; talk_text \"$remote_addr$remote_port\";");

    connect_client(worker);
    for (uint64_t i = 0; i < 2; i++) {
        fb_test_refuse_memory(worker, i, 1);
        strcpy(test.text, "");
        evaluated(test.conn, ((const struct talk_conf *)fb_conf_of(test.conn))->text);
        if (test.closings > 0)
            break;
    }
    scripted_settle(worker);
    scripted_finish(&worker);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, variables_are_read, 0, 6);
    tcase_add_test(tcase, values_are_kept_unless_they_are_volatile);
    tcase_add_test(tcase, a_protocol_sets_its_own);
    tcase_add_loop_test(tcase, it_sets_no_others, 0, 3);
    tcase_add_test(tcase, the_outcome_and_bytes_are_the_logs);
    tcase_add_test(tcase, the_log_comes_before_closed);
    tcase_add_loop_test(tcase, a_handler_before_it_finds_nothing, 0, 2);
    tcase_add_loop_test(tcase, a_client_without_its_header_has_no_values, 0, 2);
    tcase_add_test(tcase, a_connection_to_a_server_finds_the_same);
    tcase_add_test(tcase, the_state_is_the_first_one);
    tcase_add_test(tcase, without_memory_nothing_is_found);
}

TEST_MAIN("sdk_stream", add_tests)

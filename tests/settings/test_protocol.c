/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives brought by a protocol: every kind of value, and a single protocol for a server. */
#include "settings/loading.h"
#include "support/test.h"

#include <string.h>

struct values {
    const char *text, *silent;
    const fb_template *template, *made;
    int64_t number, size, msec, flag, bare;
};

#define AT(member) .offset = offsetof(struct values, member)

/* A text, and the name of a variable. */
static int set_made(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    const fb_template **made = value;

    ck_assert_uint_eq(n, 2);
    *made = fb_conf_template(conf, "kind_made", args[0]);
    return *made != NULL && fb_conf_variable(conf, "kind_made", args[1]) != NULL ? 0 : -1;
}

static const fb_variable_definition variables[] = { { .name = "kinds_name" } };
static const fb_variable_definition others[] = { { .name = "other_kind" } };

static const fb_directive directives[] = {
    { .name = "kinds", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "kind_text", .value = FB_VALUE_STRING, AT(text), .initial = "a b" },
    { .name = "kind_silent", .value = FB_VALUE_STRING, AT(silent) },
    { .name = "kind_number", .value = FB_VALUE_NUMBER, AT(number), .least = -3, .greatest = 9 },
    { .name = "kind_size",
        .value = FB_VALUE_SIZE,
        AT(size),
        .least = 1,
        .greatest = 65536,
        .initial = "4k" },
    { .name = "kind_msec", .value = FB_VALUE_MSEC, AT(msec), .initial = "5s" },
    { .name = "kind_flag", .value = FB_VALUE_FLAG, AT(flag), .initial = "on" },
    { .name = "kind_bare", .value = FB_VALUE_NUMBER, AT(bare) },
    { .name = "kind_template",
        .value = FB_VALUE_TEMPLATE,
        AT(template),
        .initial = "to $remote_addr" },
    { .name = "kind_made",
        .value = FB_VALUE_CUSTOM,
        AT(made),
        .room = sizeof(const fb_template *),
        .set = set_made,
        .args_least = 2,
        .args_most = 2 },
};
static const fb_directive other_directives[] = {
    { .name = "other", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "other_option", .value = FB_VALUE_NONE },
};
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol kinds = {
    FB_PROTOCOL_HEADER,
    .name = "kinds",
    FB_PROTOCOL_DIRECTIVES(directives),
    FB_PROTOCOL_VARIABLES(variables),
    .conf_state = sizeof(struct values),
    .ops = &ops,
};
static const fb_protocol other = {
    FB_PROTOCOL_HEADER,
    .name = "other",
    FB_PROTOCOL_DIRECTIVES(other_directives),
    FB_PROTOCOL_VARIABLES(others),
    .ops = &ops,
};
static const fb_protocol *const protocols[] = { &other, &kinds, NULL };

static void begin_loading(struct loading *loading)
{
    loading_begin(loading);
    loading->options.protocols = protocols;
}

#define SERVER(contents) "events { } stream { server { listen 1; " contents " } }"

static const struct values *values_of(const struct loading *loading)
{
    const struct server *server = STAILQ_FIRST(&loading->cycle->stream.servers);

    ck_assert_ptr_eq(server->protocol, &kinds);
    ck_assert_uint_eq(server->protocol_index, 1);
    return server->protocol_conf;
}

START_TEST(every_kind_of_value_is_set)
{
    struct loading loading;
    const struct values *values;

    begin_loading(&loading);
    accept_text(&loading,
        SERVER("kind_number -3; kind_flag off; kinds; kind_text \"x;y\"; kind_size 64k;"
               " kind_msec 1500ms; kind_silent z; kind_bare 7;"),
        "");
    values = values_of(&loading);
    ck_assert_int_eq(values->number, -3);
    ck_assert_int_eq(values->flag, 0);
    ck_assert_str_eq(values->text, "x;y");
    ck_assert_int_eq(values->size, 65536);
    ck_assert_int_eq(values->msec, 1500);
    ck_assert_str_eq(values->silent, "z");
    ck_assert_int_eq(values->bare, 7);
    ck_assert_ptr_nonnull(values->template);
    loading_end(&loading);
}
END_TEST

START_TEST(what_is_not_written_has_its_initial_value)
{
    struct loading loading;
    const struct values *values;

    begin_loading(&loading);
    accept_text(&loading, SERVER("kinds; kind_msec off;"), "");
    values = values_of(&loading);
    ck_assert_str_eq(values->text, "a b");
    ck_assert_ptr_null(values->silent);
    ck_assert_int_eq(values->number, 0);
    ck_assert_int_eq(values->size, 4096);
    ck_assert_int_eq(values->msec, 0);
    ck_assert_int_eq(values->flag, 1);
    loading_end(&loading);
}
END_TEST

START_TEST(servers_of_a_protocol_are_independent)
{
    struct loading loading;
    const struct server *second;

    begin_loading(&loading);
    accept_text(&loading,
        "events { } stream { server { listen 1; kinds; kind_bare 1; }"
        " server { listen 2; kind_bare 2; kinds; } server { listen 3; other; } }",
        "");
    second = STAILQ_NEXT(STAILQ_FIRST(&loading.cycle->stream.servers), link);
    ck_assert_int_eq(values_of(&loading)->bare, 1);
    ck_assert_int_eq(((const struct values *)second->protocol_conf)->bare, 2);
    second = STAILQ_NEXT(second, link);
    ck_assert_ptr_eq(second->protocol, &other);
    ck_assert_uint_eq(second->protocol_index, 0);
    ck_assert_ptr_null(second->protocol_conf);
    loading_end(&loading);
}
END_TEST

START_TEST(values_are_held_against_their_range)
{
    static const struct {
        const char *directive, *name, *value, *message;
    } cases[] = {
        { "kind_number 10;", "kind_number", "10", "the value must be between -3 and 9" },
        { "kind_number x;", "kind_number", "x", "expected a number" },
        { "kind_size 0;", "kind_size", "0", "the value must be between 1 and 65536" },
        { "kind_size 9999999999g;", "kind_size", "9999999999g", "the value is too large" },
        { "kind_msec -1;", "kind_msec", "-1", "expected a time such as 500ms, 30s or 1h 30m" },
        { "kind_bare -1;", "kind_bare", "-1", "the value must be at least 0" },
        { "kind_flag 2;", "kind_flag", "2", "expected \"on\" or \"off\"" },
    };
    struct loading loading;
    char text[256], expected[256];

    begin_loading(&loading);
    for (size_t i = 0; i < countof(cases); i++) {
        snprintf(text, sizeof(text), SERVER("kinds; %s"), cases[i].directive);
        snprintf(expected, sizeof(expected),
            "invalid value \"%s\" in \"%s\" directive: %s in /main:1:%zu\n", cases[i].value,
            cases[i].name, cases[i].message, strlen(SERVER("kinds; ")) - 2 + strlen(cases[i].name));
        refuse_text(&loading, text, expected);
    }
    refuse_text(&loading, SERVER("kinds on; kind_text;"),
        "invalid number of arguments in \"kinds\" directive: expected 0, found 1 in /main:1:46\n"
        "invalid number of arguments in \"kind_text\" directive: expected 1, found 0 "
        "in /main:1:50\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_server_has_one_protocol)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading, SERVER("kinds; other;"),
        "\"other\" directive conflicts with \"kinds\" in line 1: a server has one protocol "
        "in /main:1:47\n");
    refuse_text(&loading, SERVER("kind_bare 1; other;"),
        "\"other\" directive conflicts with \"kind_bare\" in line 1: a server has one protocol "
        "in /main:1:53\n");
    loading_end(&loading);
}
END_TEST

START_TEST(an_option_needs_its_protocol)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading, SERVER("other_option;"),
        "\"other_option\" directive needs \"other\" in the same server in /main:1:40\n");
    /* a mistake in a different server hides nothing, a mistake in the same server may have been the
     * handler */
    refuse_text(&loading,
        "events { } stream { server { listen 1; other_option; } server { listen 2; bogus_x; }"
        " server { listen 3; other_option; otherr; } }",
        "unknown directive \"bogus_x\" in /main:1:75\n"
        "unknown directive \"otherr\", did you mean \"other\"? in /main:1:119\n"
        "\"other_option\" directive needs \"other\" in the same server in /main:1:40\n");
    loading_end(&loading);
}
END_TEST

START_TEST(a_protocol_s_directives_belong_into_stream_and_its_handler_into_a_server)
{
    struct loading loading;

    begin_loading(&loading);
    refuse_text(&loading, "events { kind_bare 1; } stream { kinds; } kind_nubmer 1;",
        "\"kind_bare\" directive is not allowed here, and belongs in \"stream\" or \"server\" "
        "in /main:1:10\n"
        "unknown directive \"kind_nubmer\", did you mean \"kind_number\"? in /main:1:43\n"
        "\"kinds\" directive is not allowed here, and belongs in \"server\" in /main:1:34\n");
    loading_end(&loading);
}
END_TEST

/* A text is checked when read, the variables at the end of reading. */
START_TEST(texts_with_variables_are_checked)
{
    static const struct {
        const char *directives, *wrong; /* NULL: nothing is */
    } cases[] = {
        { "kinds; kind_template \"\";", NULL },
        { "kinds; kind_template $other_kind;", NULL },
        { "kind_template \"to $kinds_name\"; kinds;", NULL },
        { "kinds; kind_made \"$1 ${pid}s\" $kinds_name;", NULL },
        { "kinds; kind_template $kinds_nam;",
            "unknown \"kinds_nam\" variable, did you mean \"kinds_name\"? in /main:1:61\n" },
        { "kinds; kind_template \"a$\";",
            "invalid variable name in \"a$\": expected letters, digits or \"_\" after \"$\""
            " in /main:1:61\n" },
        { "kinds; kind_made \"${pid\" pid;",
            "the closing bracket in \"pid\" variable is missing in \"${pid\" in /main:1:47\n" },
        { "kinds; kind_made a $;",
            "invalid variable name \"$\": expected letters, digits or \"_\" in /main:1:47\n" },
        { "kinds; kind_made a $nothing_near;",
            "unknown \"nothing_near\" variable in /main:1:47\n" },
    };
    struct loading loading;
    char text[256];

    begin_loading(&loading);
    snprintf(text, sizeof(text), SERVER("%s"), cases[_i].directives);
    judge_text(&loading, text, cases[_i].wrong);
    loading_end(&loading);
}
END_TEST

START_TEST(a_default_may_have_variables)
{
    fb_directive wrong[] = { directives[0], directives[8] };
    const fb_protocol protocol = {
        FB_PROTOCOL_HEADER,
        .name = "kinds",
        FB_PROTOCOL_DIRECTIVES(wrong),
        .conf_state = sizeof(struct values),
        .ops = &ops,
    };
    const fb_protocol *const list[] = { &protocol, NULL };
    struct loading loading;

    wrong[1].initial = "to $remote_adr";
    loading_begin(&loading);
    loading.options.protocols = list;
    refuse_text(&loading, SERVER("kinds;"),
        "unknown \"remote_adr\" variable, did you mean \"remote_addr\"? in /main:1:12\n");
    loading_end(&loading);
}
END_TEST

START_TEST(two_protocols_cannot_define_one_variable)
{
    static const fb_variable_definition both[] = { { .name = "other_kind" } };
    static const fb_protocol twin = {
        FB_PROTOCOL_HEADER,
        .name = "other",
        FB_PROTOCOL_DIRECTIVES(directives),
        FB_PROTOCOL_VARIABLES(both),
        .conf_state = sizeof(struct values),
        .ops = &ops,
    };
    const fb_protocol *const list[] = { &other, &twin, NULL };
    struct loading loading;

    loading_begin(&loading);
    loading.options.protocols = list;
    refuse_text(&loading, SERVER("other;"),
        "protocol \"other\" defines the variable \"other_kind\", already defined elsewhere in"
        " /main:1:12\n");
    loading_end(&loading);
}
END_TEST

/* The other server may follow, and have all addresses of the port. */
START_TEST(clients_are_passed_to_addresses_of_ours)
{
    static const struct {
        const char *address, *wrong; /* NULL: nothing is */
    } cases[] = {
        { "127.0.0.1:2", NULL },
        { "127.0.0.9:3", NULL },
        { "[::1]:4", NULL },
        { "127.0.0.9:5", NULL },
        { "unix:/there", NULL },
        { "$server_addr:99", NULL },
        { "127.0.0.9:2", "no server listens on \"127.0.0.9:2\" in /main:1:40\n" },
        { "127.0.0.1:4", "no server listens on \"127.0.0.1:4\" in /main:1:40\n" },
        { "[::1]:3", "no server listens on \"[::1]:3\" in /main:1:40\n" },
        { "unix:/not", "no server listens on \"unix:/not\" in /main:1:40\n" },
        { "127.0.0.1", "invalid address \"127.0.0.1\": expected a port in /main:1:40\n" },
        { "$nobody:2", "unknown \"nobody\" variable in /main:1:40\n" },
        { "$:2", "invalid variable name in \"$:2\": expected letters, digits or \"_\" after \"$\""
                 " in /main:1:40\n" },
    };
    struct loading loading;
    char text[512];

    ck_assert_uint_eq(countof(cases), 13);
    loading_begin(&loading);
    snprintf(text, sizeof(text),
        "events { } stream { server { listen 1; pass %s; } server { listen 127.0.0.1:2; echo; }"
        " server { listen 3; listen [::]:4; listen unix:/there; echo; }"
        " server { listen [::]:5 ipv6only=off; echo; } }",
        cases[_i].address);
    judge_text(&loading, text, cases[_i].wrong);
    loading_end(&loading);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_kind_of_value_is_set);
    tcase_add_test(tcase, what_is_not_written_has_its_initial_value);
    tcase_add_test(tcase, servers_of_a_protocol_are_independent);
    tcase_add_test(tcase, values_are_held_against_their_range);
    tcase_add_test(tcase, a_server_has_one_protocol);
    tcase_add_loop_test(tcase, texts_with_variables_are_checked, 0, 9);
    tcase_add_loop_test(tcase, clients_are_passed_to_addresses_of_ours, 0, 13);
    tcase_add_test(tcase, a_default_may_have_variables);
    tcase_add_test(tcase, two_protocols_cannot_define_one_variable);
    tcase_add_test(tcase, an_option_needs_its_protocol);
    tcase_add_test(tcase, a_protocol_s_directives_belong_into_stream_and_its_handler_into_a_server);
}

TEST_MAIN("protocol", add_tests)

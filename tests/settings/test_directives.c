/* SPDX-License-Identifier: BSD-2-Clause */
/* Every directive: context, arguments, setting, default. The rows repeat the manual's promises, and
 * the daemon's tables are held against them, so that a new directive fails without a row. Wrong
 * values: test_values.c. */
#include "settings/apply.h"
#include "settings/loading.h"
#include "settings/manual.h"
#include "settings/samples.h"
#include "support/server_defaults.h"
#include "support/test.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define HERE "/main:1:"

/* `user` has a meaning for root only. */
uid_t geteuid(void)
{
    return 0;
}

#define WRITTEN_MAX 128

/* Writes the directive as in a file. Returns the length. */
static size_t write_directive(
    char *written, const char *name, const struct directive_case *directive, const char *value)
{
    return (size_t)snprintf(
        written, WRITTEN_MAX, "%s %s%s", name, value, directive->block ? "" : ";");
}

/* The default as the manual shows it. */
static const char *default_of(const struct directive_case *directive)
{
    return directive->initial != NULL ? directive->initial : directive->unset;
}

/* The places as messages name them. */
static const char *name_places(unsigned at)
{
    switch (at) {
    case CONTEXT_MAIN:
        return "the main context";
    case CONTEXT_MAIN | CONTEXT_STREAM | CONTEXT_SERVER:
        return "the main context, \"stream\" or \"server\"";
    case CONTEXT_EVENTS:
        return "\"events\"";
    case CONTEXT_STREAM:
        return "\"stream\"";
    case CONTEXT_UPSTREAM:
        return "\"upstream\"";
    case CONTEXT_STREAM | CONTEXT_UPSTREAM:
        return "\"stream\" or \"upstream\"";
    case CONTEXT_STREAM | CONTEXT_SERVER | CONTEXT_UPSTREAM:
        return "\"stream\", \"server\" or \"upstream\"";
    case CONTEXT_STREAM | CONTEXT_SERVER:
        return "\"stream\" or \"server\"";
    default:
        return "\"server\"";
    }
}

static const unsigned places[] = { CONTEXT_MAIN, CONTEXT_EVENTS, CONTEXT_STREAM, CONTEXT_SERVER,
    CONTEXT_UPSTREAM };

/* A configuration with a directive, all on one line. Returns the directive's column. */
static unsigned wrap_directive(
    char text[512], unsigned at, const struct directive_case *directive, const char *written)
{
    const char *before = "", *behind = "", *handler = "";

    switch (at) {
    case CONTEXT_MAIN:
        behind = strcmp(directive->name, "events") == 0 ? "" : " events { }";
        break;
    case CONTEXT_EVENTS:
        before = "events { ";
        behind = " }";
        break;
    case CONTEXT_STREAM:
        before = "events { } stream { ";
        behind = strcmp(directive->name, "upstream") == 0
                     ? " server { listen 127.0.0.1:1; proxy_pass $remote_addr; } }"
                     : " server { listen 127.0.0.1:1; } }";
        break;
    case CONTEXT_UPSTREAM:
        before = "events { } stream { upstream any { ";
        behind =
            " server 127.0.0.1:2 max_conns=9; } server { listen 127.0.0.1:1; proxy_pass any; } }";
        break;
    default:
        before = "events { } stream { server { ";
        handler = directive->handler;
        behind = " listen 127.0.0.1:1; } }";
        break;
    }
    snprintf(text, 512, "%s%s%s%s", before, written, handler, behind);
    return (unsigned)strlen(before) + 1;
}

static const char *server_base(const struct server *server, unsigned feature)
{
    if (feature > 0)
        return server_feature(server, feature - 1);
    return (const char *)&server->settings;
}

/* The field of a directive, by the table. */
static const void *field_of(const struct cycle *cycle, const struct directive_case *directive)
{
    const char *base = (const char *)&cycle->core;

    if (directive->field_of == FIELD_OF_EVENTS)
        base = (const char *)&cycle->events;
    else if (directive->field_of == FIELD_OF_SERVER)
        base = server_base(STAILQ_FIRST(&cycle->stream.servers), directive->feature);
    return base + directive->offset;
}

static int64_t number_of(const struct cycle *cycle, const struct directive_case *directive)
{
    return *(const int64_t *)field_of(cycle, directive);
}

/* The field's text, without `directory` at the beginning. */
static void check_text(const struct cycle *cycle, const struct directive_case *directive,
    const char *directory, const char *expected)
{
    const char *field = *(const char *const *)field_of(cycle, directive);

    if (expected == NULL) {
        ck_assert_ptr_null(field);
        return;
    }
    ck_assert_ptr_nonnull(field);
    ck_assert_int_eq(strncmp(field, directory, strlen(directory)), 0);
    ck_assert_str_eq(field + strlen(directory), expected);
}

static void check_set(const struct loading *loading, const struct directive_case *directive)
{
    const struct sample *sample = directive->sample;

    if (sample->check != NULL)
        sample->check(loading->cycle);
    else if (sample->field == FIELD_TEXT)
        check_text(loading->cycle, directive, loading->directory, sample->text);
    else if (sample->field == FIELD_NUMBER)
        ck_assert_msg(number_of(loading->cycle, directive) == sample->number,
            "\"%s\" sets something else", directive->name);
}

/* Calls `each` for every directive in every place. */
static void for_each(
    void (*each)(struct loading *loading, const struct directive_case *directive, unsigned at))
{
    struct loading loading;

    loading_begin(&loading);
    add_file(&loading, "other", "# nothing\n");
    add_module(&loading, "plain_a.so");
    add_module(&loading, "plain_b.so");
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++)
        for (size_t i = 0; i < countof(places); i++)
            each(&loading, row, places[i]);
    loading_end(&loading);
}

static void try_accepted(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char written[WRITTEN_MAX], text[512];

    if (!(directive->at & at))
        return;
    write_directive(written, directive->name, directive, directive->sample->value);
    wrap_directive(text, at, directive, written);
    accept_text(loading, text, "");
    check_set(loading, directive);
}

START_TEST(a_directive_is_accepted_where_it_belongs)
{
    for_each(try_accepted);
}
END_TEST

static void try_misplaced(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char written[WRITTEN_MAX], text[512], expected[256];
    unsigned column;

    if (directive->anywhere & at)
        return;
    write_directive(written, directive->name, directive, directive->sample->value);
    column = wrap_directive(text, at, directive, written);
    if (at == CONTEXT_MAIN && strcmp(directive->name, "events") == 0)
        return;
    snprintf(expected, sizeof(expected),
        "\"%s\" directive is not allowed here, and belongs in %s in " HERE "%u\n", directive->name,
        name_places(directive->anywhere), column);
    refuse_text(loading, text, expected);
}

START_TEST(a_directive_elsewhere_is_told_where_it_belongs)
{
    for_each(try_misplaced);
}
END_TEST

static void try_misspelt(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char name[64], written[WRITTEN_MAX], text[512], expected[256];
    size_t last = strlen(directive->name) - 1;
    unsigned column;

    if (!(directive->at & at))
        return;
    strcpy(name, directive->name);
    while (name[last] == name[last - 1])
        last--;
    name[last] = directive->name[last - 1];
    name[last - 1] = directive->name[last];
    write_directive(written, name, directive, directive->sample->value);
    column = wrap_directive(text, at, directive, written);
    snprintf(expected, sizeof(expected),
        "unknown directive \"%s\", did you mean \"%s\"? in " HERE "%u\n", name, directive->name,
        column);
    refuse_text(loading, text, expected);
}

START_TEST(a_misspelt_directive_is_recognised)
{
    for_each(try_misspelt);
}
END_TEST

static void try_repeated(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char written[2 * WRITTEN_MAX], text[512], expected[256];
    size_t length;
    const char *again = directive->repeats ? directive->sample->again : directive->sample->value;
    unsigned column;

    if (!(directive->at & at))
        return;
    length = write_directive(written, directive->name, directive, directive->sample->value);
    written[length] = ' ';
    write_directive(written + length + 1, directive->name, directive, again);
    column = wrap_directive(text, at, directive, written);
    expected[0] = '\0';
    column += (unsigned)length + 1;
    if (directive->sample->warning != NULL)
        snprintf(expected, sizeof(expected), "warning: %s in " HERE "%u\n",
            directive->sample->warning, column);
    if (directive->repeats) {
        accept_text(loading, text, expected);
        return;
    }
    snprintf(expected, sizeof(expected),
        "\"%s\" directive is duplicate: first set in /main:1 in " HERE "%u\n", directive->name,
        column);
    refuse_text(loading, text, expected);
}

START_TEST(a_directive_is_repeated_only_where_that_has_a_meaning)
{
    for_each(try_repeated);
}
END_TEST

static void try_arguments(
    struct loading *loading, const struct directive_case *directive, unsigned at, unsigned n)
{
    char written[256], text[512], expected[512], number[32];
    unsigned column, length = (unsigned)strlen(directive->name);

    strcpy(written, directive->name);
    for (unsigned i = 0; i < n; i++)
        strcat(written, " x");
    strcat(written, directive->block ? " { }" : ";");
    column = wrap_directive(text, at, directive, written);
    if (n > directive->most) /* the first superfluous value is marked */
        column += length + 2 * directive->most + 1;
    if (directive->least == directive->most)
        snprintf(number, sizeof(number), "%u", directive->least);
    else if (directive->most == UCHAR_MAX)
        snprintf(number, sizeof(number), "at least %u", directive->least);
    else
        snprintf(number, sizeof(number), "%u to %u", directive->least, directive->most);
    snprintf(expected, sizeof(expected),
        "invalid number of arguments in \"%s\" directive: expected %s, found %u in " HERE "%u\n",
        directive->name, number, n, column);
    refuse_text(loading, text, expected);
}

static void try_wrong_arguments(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    if (!(directive->at & at))
        return;
    if (directive->least > 0)
        try_arguments(loading, directive, at, directive->least - 1);
    if (directive->most < UCHAR_MAX)
        try_arguments(loading, directive, at, directive->most + 1);
}

START_TEST(the_number_of_arguments_is_checked)
{
    for_each(try_wrong_arguments);
}
END_TEST

static void try_other_form(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char written[256], text[512], expected[256];
    bool block = directive->block;
    unsigned column;

    if (!(directive->at & at))
        return;
    snprintf(written, sizeof(written), block ? "%s;" : "%s { bogus; }", directive->name);
    column = wrap_directive(text, at, directive, written);
    snprintf(expected, sizeof(expected),
        block ? "directive \"%s\" has no opening \"{\" in " HERE "%u\n"
              : "directive \"%s\" is not terminated by \";\", and takes no block in " HERE "%u\n",
        directive->name, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_block_is_no_simple_directive_nor_the_reverse)
{
    for_each(try_other_form);
}
END_TEST

START_TEST(what_is_not_written_has_its_default)
{
    struct loading loading;
    const struct core_settings *core;

    loading_begin(&loading);
    accept_text(&loading, "events { } stream { server { listen 127.0.0.1:1; } }", "");
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++)
        if (row->sample->field == FIELD_TEXT)
            check_text(loading.cycle, row, "", row->sample->initial_text);
    core = &loading.cycle->core;
    ck_assert_int_eq(core->pool.threads, 32);
    ck_assert_uint_eq(core->log_n, 1);
    ck_assert_str_eq(core->logs[0].path, "/default/error.log");
    ck_assert_int_eq(core->logs[0].level, LEVEL_ERROR);
    ck_assert_ptr_null(core->cpus);
    ck_assert_uint_eq(core->env_n, 0);
    ck_assert_uint_eq(loading.cycle->events.debug_n, 0);
    ck_assert_ptr_eq(loading.cycle->events.mechanism, mechanism_find(NULL));
    if (strcmp(loading.cycle->events.mechanism->name, "epoll") == 0)
        ck_assert_int_eq(loading.cycle->events.mechanism_values.of[0], 512);
    ck_assert_ptr_null(STAILQ_FIRST(&loading.cycle->stream.servers)->protocol);
    loading_end(&loading);
}
END_TEST

/* An omitted number equals the written default's number. */
static void try_default(
    struct loading *loading, const struct directive_case *directive, unsigned at)
{
    char written[WRITTEN_MAX], text[512];
    int64_t unwritten;

    if (!(directive->at & at) || directive->sample->field != FIELD_NUMBER)
        return;
    accept_text(loading, "events { } stream { server { listen 127.0.0.1:1; } }", "");
    unwritten = number_of(loading->cycle, directive);
    if (directive->initial == NULL) {
        ck_assert_int_eq(unwritten, directive->sample->initial);
        return;
    }
    write_directive(written, directive->name, directive, directive->initial);
    wrap_directive(text, at, directive, written);
    accept_text(loading, text, "");
    ck_assert_msg(number_of(loading->cycle, directive) == unwritten,
        "the default of \"%s\" is not \"%s\"", directive->name, directive->initial);
}

START_TEST(a_default_may_be_written)
{
    for_each(try_default);
}
END_TEST

START_TEST(the_manual_shows_the_default)
{
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++) {
        char initial[256];
        const char *text = manual_default(row->name, row->at, initial);

        ck_assert_msg(text != NULL, "the manual has no default of \"%s\"", row->name);
        ck_assert_str_eq(text, default_of(row));
    }
}
END_TEST

START_TEST(every_directive_has_its_sample)
{
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++) {
        size_t n = strlen(row->sample->value);

        ck_assert_msg(row->repeats == (row->sample->again != NULL),
            "\"%s\" has a second value only if it may be repeated", row->name);
        ck_assert_msg(row->block == (n > 0 && row->sample->value[n - 1] == '}'),
            "\"%s\" has braces only if it has a block", row->name);
        ck_assert_msg((row->initial != NULL) != (row->unset != NULL),
            "\"%s\" has a default, or the word for none", row->name);
    }
}
END_TEST

/* Structs without a configuration are as after a configuration without directives. */
START_TEST(what_is_made_by_hand_has_the_same_defaults)
{
    struct loading loading;
    struct cycle made;
    struct server server;
    struct arena *arena;

    memset(&made, 0xff, sizeof(made));
    memset(&server, 0xff, sizeof(server));
    STAILQ_INIT(&made.stream.servers);
    STAILQ_INSERT_TAIL(&made.stream.servers, &server, link);
    memset(&made.core, 0, sizeof(made.core));
    memset(&made.events, 0, sizeof(made.events));
    server_defaults_of_table(&made, NULL, NULL, CONTEXT_MAIN, core_table);
    server_defaults_of_table(&made, NULL, NULL, CONTEXT_EVENTS, events_table);
    for (unsigned i = 0; mechanism_table[i] != NULL; i++)
        made.events.all_values[i] = mechanism_defaults(mechanism_table[i]);
    arena = server_defaults(&server);
    loading_begin(&loading);
    accept_text(&loading, "events { } stream { server { listen 127.0.0.1:1; } }", "");
    for (const struct directive_case *row = directive_cases(); row->name != NULL; row++)
        if (row->sample->field == FIELD_NUMBER)
            ck_assert_msg(number_of(&made, row) == number_of(loading.cycle, row),
                "\"%s\" has another default", row->name);
    loading_end(&loading);
    arena_destroy(&arena);
    ck_assert_int_eq(made.core.log_burst, 1000);
    ck_assert_int_eq(made.core.log_interval, 1000);
    ck_assert_int_eq(made.core.pool.threads, 32);
    ck_assert_int_eq(made.core.pool.queue, 65536);
    ck_assert_ptr_null(made.core.pid);
    ck_assert(!made.events.connections_auto);
    for (unsigned i = 0; mechanism_table[i] != NULL; i++)
        for (int k = 0; k < MECHANISM_OPTIONS; k++)
            ck_assert_int_eq(
                made.events.all_values[i].of[k], mechanism_table[i]->options[k].initial);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_directive_has_its_sample);
    tcase_add_test(tcase, a_directive_is_accepted_where_it_belongs);
    tcase_add_test(tcase, a_directive_elsewhere_is_told_where_it_belongs);
    tcase_add_test(tcase, a_misspelt_directive_is_recognised);
    tcase_add_test(tcase, a_directive_is_repeated_only_where_that_has_a_meaning);
    tcase_add_test(tcase, the_number_of_arguments_is_checked);
    tcase_add_test(tcase, a_block_is_no_simple_directive_nor_the_reverse);
    tcase_add_test(tcase, what_is_not_written_has_its_default);
    tcase_add_test(tcase, a_default_may_be_written);
    tcase_add_test(tcase, what_is_made_by_hand_has_the_same_defaults);
    tcase_add_test(tcase, the_manual_shows_the_default);
}

TEST_MAIN("directives", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Every directive: where it belongs, what it takes, what it sets, its default. The rows say what
 * the manual promises, and the daemon's tables are held against them, so that a new directive fails
 * until it has its row. What is wrong with a value: test_values.c. */
#include "settings/loading.h"
#include "settings/rows.h"
#include "support/test.h"

#include "protocols/table.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define HERE "/main:1:"

/* `user` has a meaning for root only. */
uid_t geteuid(void)
{
    return 0;
}

static const unsigned places[] = { CONTEXT_MAIN, CONTEXT_EVENTS, CONTEXT_STREAM, CONTEXT_SERVER };

/* A configuration with a directive, all on one line. Returns the directive's column. */
static unsigned wrap(char text[512], unsigned at, const struct row *row, const char *directive)
{
    const char *before = "", *behind = "";

    switch (at) {
    case CONTEXT_MAIN:
        behind = strcmp(row->name, "events") == 0 ? "" : " events { }";
        break;
    case CONTEXT_EVENTS:
        before = "events { ";
        behind = " }";
        break;
    case CONTEXT_STREAM:
        before = "events { } stream { ";
        behind = " server { listen 127.0.0.1:1; } }";
        break;
    default:
        before = "events { } stream { server { ";
        behind = " listen 127.0.0.1:1; } }";
        break;
    }
    snprintf(text, 512, "%s%s%s", before, directive, behind);
    return (unsigned)strlen(before) + 1;
}

static void check_number(const struct cycle *cycle, const struct row *row, int64_t expected)
{
    const char *base = row->in_core ? (const char *)&cycle->core : (const char *)&cycle->events;

    if (row->in_server)
        base = (const char *)&STAILQ_FIRST(&cycle->stream.servers)->settings;
    ck_assert_msg(*(const int64_t *)(const void *)(base + row->offset) == expected,
        "\"%s\" sets something else", row->name);
}

/* The field's text; `directory`, if any, is taken from its beginning. */
static void check_string(
    const struct cycle *cycle, const struct row *row, const char *directory, const char *expected)
{
    const char *field =
        *(const char *const *)(const void *)((const char *)&cycle->core + row->offset);

    if (expected == NULL) {
        ck_assert_ptr_null(field);
        return;
    }
    ck_assert_ptr_nonnull(field);
    ck_assert_int_eq(strncmp(field, directory, strlen(directory)), 0);
    ck_assert_str_eq(field + strlen(directory), expected);
}

static void check_set(const struct loading *loading, const struct row *row)
{
    if (row->check != NULL)
        row->check(loading->cycle);
    else if (row->text)
        check_string(loading->cycle, row, loading->directory, row->expected_text);
    else if (row->in_core || row->in_events || row->in_server)
        check_number(loading->cycle, row, row->expected);
}

/* Calls `each` for every row in every place. */
static void for_each(void (*each)(struct loading *loading, const struct row *row, unsigned at))
{
    struct loading loading;

    loading_begin(&loading);
    add_file(&loading, "other", "# nothing\n");
    add_module(&loading, "plain_a.so");
    add_module(&loading, "plain_b.so");
    for (const struct row *row = directive_rows; row->name != NULL; row++)
        for (size_t i = 0; i < countof(places); i++)
            each(&loading, row, places[i]);
    loading_end(&loading);
}

static void try_accepted(struct loading *loading, const struct row *row, unsigned at)
{
    char directive[128], text[512];

    if (!(row->at & at))
        return;
    snprintf(directive, sizeof(directive), "%s %s", row->name, row->value);
    wrap(text, at, row, directive);
    accept_text(loading, text, "");
    check_set(loading, row);
}

START_TEST(a_directive_is_accepted_where_it_belongs)
{
    for_each(try_accepted);
}
END_TEST

static void try_misplaced(struct loading *loading, const struct row *row, unsigned at)
{
    char directive[128], text[512], expected[256];
    unsigned column;

    if (row->at & at)
        return;
    snprintf(directive, sizeof(directive), "%s %s", row->name, row->value);
    column = wrap(text, at, row, directive);
    if (at == CONTEXT_MAIN && strcmp(row->name, "events") == 0)
        return;
    snprintf(expected, sizeof(expected),
        "\"%s\" directive is not allowed here, it belongs in %s in " HERE "%u\n", row->name,
        row->belongs, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_directive_elsewhere_is_told_where_it_belongs)
{
    for_each(try_misplaced);
}
END_TEST

static void try_misspelt(struct loading *loading, const struct row *row, unsigned at)
{
    char name[64], directive[128], text[512], expected[256];
    size_t last = strlen(row->name) - 1;
    unsigned column;

    if (!(row->at & at))
        return;
    strcpy(name, row->name);
    while (name[last] == name[last - 1])
        last--;
    name[last] = row->name[last - 1];
    name[last - 1] = row->name[last];
    snprintf(directive, sizeof(directive), "%s %s", name, row->value);
    column = wrap(text, at, row, directive);
    snprintf(expected, sizeof(expected),
        "unknown directive \"%s\", did you mean \"%s\"? in " HERE "%u\n", name, row->name, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_misspelt_directive_is_recognised)
{
    for_each(try_misspelt);
}
END_TEST

static void try_repeated(struct loading *loading, const struct row *row, unsigned at)
{
    char directive[256], text[512], expected[256];
    const char *again = row->again != NULL ? row->again : row->value;
    unsigned column;

    if (!(row->at & at))
        return;
    snprintf(directive, sizeof(directive), "%s %s %s %s", row->name, row->value, row->name, again);
    column = wrap(text, at, row, directive);
    if (row->again != NULL) {
        accept_text(loading, text, "");
        return;
    }
    column += (unsigned)(strlen(row->name) + strlen(row->value)) + 2;
    snprintf(expected, sizeof(expected),
        "\"%s\" directive is duplicate, it is already set in /main:1 already in " HERE "%u\n",
        row->name, column);
    refuse_text(loading, text, expected);
}

START_TEST(a_directive_is_repeated_only_where_that_has_a_meaning)
{
    for_each(try_repeated);
}
END_TEST

static void try_arguments(
    struct loading *loading, const struct row *row, unsigned at, unsigned n, bool block)
{
    char directive[256], text[512], expected[512], number[32];
    unsigned column, length = (unsigned)strlen(row->name);

    strcpy(directive, row->name);
    for (unsigned i = 0; i < n; i++)
        strcat(directive, " x");
    strcat(directive, block ? " { }" : ";");
    column = wrap(text, at, row, directive);
    if (n > row->most) /* the first that is too many is marked */
        column += length + 2 * row->most + 1;
    if (row->least == row->most)
        snprintf(number, sizeof(number), "%u", row->least);
    else if (row->most == UCHAR_MAX)
        snprintf(number, sizeof(number), "at least %u", row->least);
    else
        snprintf(number, sizeof(number), "%u to %u", row->least, row->most);
    snprintf(expected, sizeof(expected),
        "invalid number of arguments in \"%s\" directive: expected %s, found %u in " HERE "%u\n",
        row->name, number, n, column);
    refuse_text(loading, text, expected);
}

static void try_wrong_arguments(struct loading *loading, const struct row *row, unsigned at)
{
    bool block = strchr(row->value, '{') != NULL;

    if (!(row->at & at))
        return;
    if (row->least > 0)
        try_arguments(loading, row, at, row->least - 1, block);
    if (row->most < UCHAR_MAX)
        try_arguments(loading, row, at, row->most + 1, block);
}

START_TEST(the_number_of_arguments_is_checked)
{
    for_each(try_wrong_arguments);
}
END_TEST

static void try_other_form(struct loading *loading, const struct row *row, unsigned at)
{
    char directive[256], text[512], expected[256];
    bool block = strchr(row->value, '{') != NULL;
    unsigned column;

    if (!(row->at & at))
        return;
    snprintf(directive, sizeof(directive), block ? "%s;" : "%s { bogus; }", row->name);
    column = wrap(text, at, row, directive);
    snprintf(expected, sizeof(expected),
        block ? "directive \"%s\" has no opening \"{\" in " HERE "%u\n"
              : "directive \"%s\" is not terminated by \";\", it takes no block in " HERE "%u\n",
        row->name, column);
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
    for (const struct row *row = directive_rows; row->name != NULL; row++) {
        if (row->text)
            check_string(loading.cycle, row, "", row->initial_text);
        else if (row->in_core || row->in_events || row->in_server)
            check_number(loading.cycle, row, row->initial);
    }
    core = &loading.cycle->core;
    ck_assert_uint_eq(core->log_n, 1);
    ck_assert_str_eq(core->logs[0].path, "/default/error.log");
    ck_assert_int_eq(core->logs[0].level, LEVEL_ERROR);
    ck_assert_ptr_null(core->cpus);
    ck_assert_uint_eq(core->env_n, 0);
    ck_assert_uint_eq(loading.cycle->events.debug_n, 0);
    ck_assert_ptr_eq(loading.cycle->events.mechanism, mechanism_find(NULL));
    if (loading.cycle->events.mechanism == &mechanism_epoll)
        ck_assert_int_eq(loading.cycle->events.mechanism_option, 512);
    ck_assert_ptr_null(STAILQ_FIRST(&loading.cycle->stream.servers)->protocol);
    loading_end(&loading);
}
END_TEST

/* The default that the manual shows, to be freed; NULL where it shows none. */
static char *manual_default(const char *name)
{
    const char *srcdir = getenv("srcdir");
    char path[512], item[80], *line = NULL;
    size_t size = 0, length;
    bool within = false, next = false, found = false;
    FILE *file;

    snprintf(path, sizeof(path), "%s/man/forkbeard.conf.5.in", srcdir != NULL ? srcdir : ".");
    file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    length = (size_t)snprintf(item, sizeof(item), ".It Ic %s", name);
    while (!found && getline(&line, &size, file) != -1) {
        line[strcspn(line, "\n")] = '\0';
        found = next;
        if (strncmp(line, ".It Ic ", 7) == 0)
            within = strncmp(line, item, length) == 0 && strchr(" ", line[length]) != NULL;
        next = within && strcmp(line, ".It Default:") == 0;
    }
    fclose(file);
    if (!found) {
        free(line);
        line = NULL;
    }
    return line;
}

START_TEST(the_manual_shows_the_default)
{
    for (const struct row *row = directive_rows; row->name != NULL; row++) {
        char *text = manual_default(row->name);

        ck_assert_msg(text != NULL, "the manual has no default of \"%s\"", row->name);
        ck_assert_str_eq(text, row->manual);
        free(text);
    }
}
END_TEST

static const struct row *find_row(const char *name)
{
    const struct row *row = directive_rows;

    while (row->name != NULL && strcmp(row->name, name) != 0)
        row++;
    ck_assert_msg(row->name != NULL, "\"%s\" has no row in rows.c", name);
    return row;
}

/* The number of directives. */
static unsigned compare_table(const struct setting *table)
{
    unsigned n = 0;

    for (; table->name != NULL; table++, n++) {
        const struct row *row = find_row(table->name);

        ck_assert_uint_eq(row->at, table->at);
        ck_assert_uint_eq(row->least, table->least);
        ck_assert_uint_eq(row->most, table->most);
        ck_assert_int_eq(row->again != NULL, table->repeats);
        ck_assert_int_eq(strchr(row->value, '{') != NULL, table->block);
        ck_assert_msg((table->initial != NULL) != (table->unset != NULL),
            "\"%s\" has a default, or the word for none", table->name);
        ck_assert_str_eq(row->manual, table->initial != NULL ? table->initial : table->unset);
    }
    return n;
}

START_TEST(every_directive_has_its_row)
{
    unsigned n =
        compare_table(core_table) + compare_table(events_table) + compare_table(stream_table);

    for (int i = 0; mechanism_table[i] != NULL; i++) {
        const struct mechanism_option *option = &mechanism_table[i]->option;

        if (option->name == NULL)
            continue;
        ck_assert_int_eq(atoll(find_row(option->name)->manual), option->initial);
        n++;
    }
    for (int i = 0; protocols_builtin[i] != NULL; i++)
        for (unsigned j = 0; j < protocols_builtin[i]->directive_n; j++, n++)
            ck_assert_uint_eq(find_row(protocols_builtin[i]->directives[j].name)->at,
                protocols_builtin[i]->directives[j].flags & FB_DIRECTIVE_HANDLER
                    ? CONTEXT_SERVER
                    : CONTEXT_STREAM | CONTEXT_SERVER);
    for (const struct row *row = directive_rows; row->name != NULL; row++)
        n--;
    ck_assert_msg(n == 0, "rows.c has rows of directives that there are not");
}
END_TEST

static void check_made(const struct row *row, const void *settings)
{
    if (!row->text)
        ck_assert_msg(
            *(const int64_t *)(const void *)((const char *)settings + row->offset) == row->initial,
            "\"%s\" has another default", row->name);
}

/* A struct without a configuration. */
START_TEST(what_is_made_by_hand_has_the_same_defaults)
{
    struct core_settings core;
    struct events_settings events;
    struct server_settings server;

    memset(&core, 0xff, sizeof(core));
    memset(&events, 0xff, sizeof(events));
    memset(&server, 0xff, sizeof(server));
    core_settings_defaults(&core);
    events_settings_defaults(&events);
    stream_settings_defaults(&server);
    for (const struct row *row = directive_rows; row->name != NULL; row++) {
        if (row->in_core)
            check_made(row, &core);
        if (row->in_events)
            check_made(row, &events);
        if (row->in_server)
            check_made(row, &server);
    }
    ck_assert_int_eq(core.log_burst, 1000);
    ck_assert_int_eq(core.log_interval, 1000);
    ck_assert_int_eq(core.threads, 32);
    ck_assert_int_eq(core.thread_queue, 65536);
    ck_assert_ptr_null(core.pid);
    ck_assert(!events.connections_auto);
    for (unsigned i = 0; mechanism_table[i] != NULL; i++)
        ck_assert_int_eq(events.mechanism_options[i], mechanism_table[i]->option.initial);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, every_directive_has_its_row);
    tcase_add_test(tcase, a_directive_is_accepted_where_it_belongs);
    tcase_add_test(tcase, a_directive_elsewhere_is_told_where_it_belongs);
    tcase_add_test(tcase, a_misspelt_directive_is_recognised);
    tcase_add_test(tcase, a_directive_is_repeated_only_where_that_has_a_meaning);
    tcase_add_test(tcase, the_number_of_arguments_is_checked);
    tcase_add_test(tcase, a_block_is_no_simple_directive_nor_the_reverse);
    tcase_add_test(tcase, what_is_not_written_has_its_default);
    tcase_add_test(tcase, what_is_made_by_hand_has_the_same_defaults);
    tcase_add_test(tcase, the_manual_shows_the_default);
}

TEST_MAIN("directives", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Environment variables in words: names, defaults, quotes, and mistakes. */
#include "conf/substitute.h"

#include "conf/render.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char *const environment[] = { "NAME=value", "EMPTY=", "NAME_2=two", "_X=y", "lower=no",
    "HARM=a b; }\n\"'{ ${NAME} #\\", "EQUALS=a=b", "NAME=second", NULL };

#define UNSET(name)                                                                                \
    "the environment variable \"" name "\" is not set: set it, or write a default as in \"${" name \
    ":-default}\" in t:1:3\n"
#define OPEN(name)                                                                                 \
    "the environment variable \"${" name "\" is not closed: expected \"}\" or \":-default}\" "     \
    "after its name, and quotes around a default with blanks, \";\" or \"{\" in t:1:3\n"

static const struct {
    const char *word; /* text of the file */
    const char *text; /* the result; NULL: a mistake */
    const char *report;
} rows[] = {
    { "${NAME}", "value", "" },
    { "a${NAME}b${NAME_2}c", "avaluebtwoc", "" },
    { "\"${NAME} ${NAME_2}\"", "value two", "" },
    { "'${NAME}'", "value", "" },
    { "${_X}", "y", "" },
    { "${EMPTY}", "", "" },
    { "${EQUALS}", "a=b", "" },
    { "x${HARM}y", "xa b; }\n\"'{ ${NAME} #\\y", "" },
    /* defaults */
    { "${NAME:-other}", "value", "" },
    { "${NONE:-other}", "other", "" },
    { "${EMPTY:-other}", "other", "" },
    { "${NAME-other}", "value", "" },
    { "${NONE-other}", "other", "" },
    { "${EMPTY-other}", "", "" },
    { "${NONE:-}", "", "" },
    { "${NONE-}", "", "" },
    { "${NONE:--}", "-", "" },
    { "${NONE:-:-}", ":-", "" },
    { "\"${NONE:-a b; {c}\"", "a b; {c", "" },
    { "${NONE:-${NAME}}", "value", "" },
    { "<${NONE:-a${NONE-b${NAME}c}d}>", "<abvaluecd>", "" },
    { "${NONE:-${EMPTY}}", "", "" },
    { "${NAME:-${NONE}}", "value", "" }, /* an unneeded variable may be missing */
    { "${NAME-${NONE:-x}}", "value", "" },
    { "${NONE:-a}b}", "ab}", "" },
    /* others' variables, and what looks like ours */
    { "${name}", "${name}", "" },
    { "${Name}", "${Name}", "" },
    { "${NAMe}", "${NAMe}", "" },
    { "${lower}", "${lower}", "" },
    { "${1}", "${1}", "" },
    { "${}", "${}", "" },
    { "${", "${", "" },
    { "$NAME", "$NAME", "" },
    { "$", "$", "" },
    { "$$", "$$", "" },
    { "$$${NAME}", "$${NAME}", "" },
    { "$${NAME}", "${NAME}", "" },
    { "$${NONE:-x}", "${NONE:-x}", "" },
    { "${NONE:-$${NAME}}", "${NAME}", "" },
    { "$${name}", "$${name}", "" },
    { "${name}${NAME}", "${name}value", "" },
    /* mistakes */
    { "${NONE}", NULL, UNSET("NONE") },
    { "${NAM}", NULL, UNSET("NAM") },
    { "${NAME_}", NULL, UNSET("NAME_") },
    { "${NONE}${NONE_2}", NULL, UNSET("NONE") },
    { "${NONE:-${NONE_2}}", NULL, UNSET("NONE_2") },
    { "${NAME", NULL, OPEN("NAME") },
    { "${NAME:-a", NULL, OPEN("NAME") },
    { "${NAME:-${NONE:-a}", NULL, OPEN("NAME") },
    { "${NAME:-${NONE:-a", NULL, OPEN("NONE") },
    { "${NAME:}", NULL, OPEN("NAME") },
    { "${NAME:=a}", NULL, OPEN("NAME") },
    { "${NAME?a}", NULL, OPEN("NAME") },
    { "\"${NAME }\"", NULL, OPEN("NAME") },
};

/* Parses "d WORD;", and substitutes in the word. */
static int substitute_text(struct conf *conf, const char *word, const char *const *variables,
    struct conf_word *in, struct conf_word *out)
{
    const struct conf_directive *directive;
    const struct conf_block *block;
    char *text;

    ck_assert_int_ne(asprintf(&text, "d %s;", word), -1);
    block = conf_parse_text(&conf->source, "t", text, strlen(text));
    free(text);
    ck_assert_uint_eq(conf->report.error_n, 0);
    directive = STAILQ_FIRST(&block->directives);
    ck_assert_uint_eq(directive->arg_n, 1);
    *in = directive->args[0];
    return substitute_variables(&conf->source, in, variables, out);
}

START_TEST(variables_become_their_values)
{
    struct conf_word in, out;
    struct conf conf;
    char *report;
    int status;

    conf_create(&conf);
    status = substitute_text(&conf, rows[_i].word, environment, &in, &out);
    report = render_report(&conf.report);
    ck_assert_str_eq(report, rows[_i].report);
    ck_assert_int_eq(status, rows[_i].text != NULL ? 0 : -1);
    if (status == 0) {
        ck_assert_str_eq(out.text, rows[_i].text);
        ck_assert_str_eq(out.written, in.text);
        ck_assert_uint_eq(out.column, 3);
        ck_assert_uint_eq(out.width, strlen(rows[_i].word));
        ck_assert_ptr_eq(out.file, in.file);
        if (!substitute_finds(&in)) /* a word without variables is never copied */
            ck_assert_str_eq(out.text, in.text);
    } else {
        ck_assert(substitute_finds(&in));
    }
    free(report);
    conf_destroy(&conf);
}
END_TEST

START_TEST(a_message_says_what_stands_in_the_file)
{
    struct conf_word in, out;
    struct conf conf;
    char *report;

    conf_create(&conf);
    ck_assert_int_eq(substitute_text(&conf, "${NAME}/x", environment, &in, &out), 0);
    report_error(&conf.report, &out, "bad \"%s\"", out.text);
    report = render_report(&conf.report);
    ck_assert_str_eq(report, "bad \"value/x\" (from \"${NAME}/x\") in t:1:3\n");
    free(report);
    conf_destroy(&conf);
}
END_TEST

/* `n` defaults within each other. */
static char *nested(unsigned n)
{
    char *text = malloc(n * 10 + 16), *p = text;

    ck_assert_ptr_nonnull(text);
    for (unsigned i = 0; i < n; i++)
        p = stpcpy(p, "${NONE:-");
    p = stpcpy(p, "x");
    for (unsigned i = 0; i < n; i++)
        p = stpcpy(p, "}");
    return text;
}

START_TEST(depth_is_bounded)
{
    static const unsigned depths[] = { 16, 17, 100000 };

    for (size_t i = 0; i < countof(depths); i++) {
        struct conf_word in, out;
        struct conf conf;
        char *word = nested(depths[i]), *report;
        int status;

        conf_create(&conf);
        status = substitute_text(&conf, word, environment, &in, &out);
        report = render_report(&conf.report);
        if (i == 0) {
            ck_assert_int_eq(status, 0);
            ck_assert_str_eq(out.text, "x");
        } else {
            ck_assert_int_eq(status, -1);
            ck_assert_str_eq(
                report, "more than 16 defaults of environment variables are nested in t:1:3\n");
        }
        free(report);
        free(word);
        conf_destroy(&conf);
    }
}
END_TEST

START_TEST(size_is_bounded)
{
    static char large[1024 * 1024 + 3], word[17 * 4 + 1];
    const char *const variables[] = { large, NULL };
    struct conf_word in, out;
    struct conf conf;
    char *report;

    memset(large, 'x', sizeof(large) - 1);
    memcpy(large, "A=", 2);
    for (int i = 0; i < 17; i++)
        strcat(word, "${A}");
    conf_create(&conf);
    ck_assert_int_eq(substitute_text(&conf, word, variables, &in, &out), -1);
    report = render_report(&conf.report);
    ck_assert_str_eq(
        report, "with the environment variables the argument is larger than 16 MiB in t:1:3\n");
    free(report);
    conf_destroy(&conf);
}
END_TEST

START_TEST(an_environment_may_be_empty)
{
    static const char *const none[] = { NULL };
    struct conf_word in, out;
    struct conf conf;

    conf_create(&conf);
    ck_assert_int_eq(substitute_text(&conf, "${A-b}", none, &in, &out), 0);
    ck_assert_str_eq(out.text, "b");
    ck_assert_int_eq(substitute_text(&conf, "${A-b}", NULL, &in, &out), 0);
    ck_assert_str_eq(out.text, "b");
    conf_destroy(&conf);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, variables_become_their_values, 0, countof(rows));
    tcase_add_test(tcase, a_message_says_what_stands_in_the_file);
    tcase_add_test(tcase, depth_is_bounded);
    tcase_add_test(tcase, size_is_bounded);
    tcase_add_test(tcase, an_environment_may_be_empty);
}

TEST_MAIN("substitute", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports: excerpts of lines with a marked column, limits of how many mistakes are kept, and files
 * that are shown. */
#include "conf/render.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A word of a file that holds `text`. */
static void make_word(struct conf_file *file, struct conf_word *word, const char *text,
    unsigned line, unsigned column, unsigned width)
{
    *file = (struct conf_file) { .name = "/f.conf", .text = text, .size = strlen(text) };
    *word = (struct conf_word) {
        .text = "", .file = file, .line = line, .column = column, .width = width
    };
}

static const struct {
    const char *text;
    unsigned line, column, width;
    const char *excerpt; /* the line, or NULL */
} rows[] = {
    { "listen 80x;\n", 1, 8, 3, "listen 80x;\n       ^~~\n" },
    { "a;\n  b c;\nd;", 2, 3, 1, "  b c;\n  ^\n" },
    { "a;\nb;", 2, 1, 1, "b;\n^\n" },
    { "a;\r\nbb c;\r\n", 2, 1, 2, "bb c;\n^~\n" },
    /* a word of several lines is marked to the end of its first */
    { "a 'b\nc\nd' e;\n", 1, 3, 8, "a 'b\n  ^~\n" },
    { "a 'b\r\nc';\r\n", 1, 3, 6, "a 'b\n  ^~\n" },
    /* after the last byte */
    { "a {", 1, 4, 1, "a {\n   ^\n" },
    { "a bc;", 1, 3, 0, "a bc;\n  ^\n" },
    /* an empty line */
    { "a {\n", 2, 1, 1, NULL },
    { "a;\n\nb;", 2, 1, 1, NULL },
    { "", 1, 1, 1, NULL },
    { "a;\n", 3, 1, 1, NULL },
    { "a;\n", 0, 0, 0, NULL },
    { "a;\n", 1, 0, 1, NULL },
    { "a;\n", 1, 4, 1, NULL },
    /* tabs become spaces */
    { "\tlisten\t80;", 1, 2, 6, "        listen  80;\n        ^~~~~~\n" },
    { "\tlisten\t80;", 1, 9, 2, "        listen  80;\n                ^~\n" },
    { "ab\t'c\td';", 1, 4, 5, "ab      'c      d';\n        ^~~~~~~~~~\n" },
    /* a control byte of a terminal is shown as a number */
    { "a \x1b[31m;", 1, 3, 5, "a \\x1b[31m;\n  ^~~~~~~~\n" },
    { "\x7f\x01 b;", 1, 4, 1, "\\x7f\\x01 b;\n         ^\n" },
    { "\xc2\x9b b;", 1, 4, 1, "\\xc2\\x9b b;\n         ^\n" },
    { "a\rb c;", 1, 5, 1, "a\\x0db c;\n       ^\n" },
    /* a character of several bytes is one column, and bytes outside of UTF-8 are shown as
     * numbers */
    { "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f x;", 1, 16, 1,
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9f x;\n         ^\n" },
    { "\xc3\xa9\xc3\xa9 x;", 1, 1, 4, "\xc3\xa9\xc3\xa9 x;\n^~\n" },
    { "\xff\xc3 x;", 1, 4, 1, "\\xff\\xc3 x;\n         ^\n" },
    { "\xe2\x82", 1, 1, 2, "\\xe2\\x82\n^~~~~~~~\n" },
};

START_TEST(an_excerpt_marks_its_word)
{
    const struct report_mistake *mistake;
    struct conf_file file;
    struct conf_word word;
    struct conf conf;

    conf_create(&conf);
    make_word(&file, &word, rows[_i].text, rows[_i].line, rows[_i].column, rows[_i].width);
    report_error(&conf.report, &word, "message");
    mistake = STAILQ_FIRST(&conf.report.mistakes);
    ck_assert_ptr_nonnull(mistake);
    ck_assert_pstr_eq(mistake->excerpt, rows[_i].excerpt);
    conf_destroy(&conf);
}
END_TEST

/* The excerpt's two lines are of use: short, and the mark stands below its word. */
static void check_clipped(const char *line, unsigned column, const char *marked)
{
    const struct report_mistake *mistake;
    struct conf_file file;
    struct conf_word word;
    struct conf conf;
    const char *mark, *end;

    conf_create(&conf);
    make_word(&file, &word, line, 1, column, (unsigned)strlen(marked));
    report_error(&conf.report, &word, "message");
    mistake = STAILQ_FIRST(&conf.report.mistakes);
    ck_assert_ptr_nonnull(mistake->excerpt);
    mark = strchr(mistake->excerpt, '\n');
    ck_assert_ptr_nonnull(mark);
    ck_assert_int_le(mark - mistake->excerpt, 170);
    mark++;
    end = strchr(mark, '^');
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(strncmp(mistake->excerpt + (end - mark), marked, 4), 0);
    ck_assert_int_eq(end[strlen(end) - 1], '\n');
    conf_destroy(&conf);
}

START_TEST(a_long_line_is_clipped_around_its_word)
{
    char line[4096];

    memset(line, 'x', sizeof(line));
    memcpy(line + 2000, " word ", 6);
    line[sizeof(line) - 1] = '\0';
    check_clipped(line, 2002, "word");
    check_clipped(line + 1990, 12, "word");
    line[2005] = '\0';
    check_clipped(line, 2002, "word");
    /* a word that is itself too long */
    check_clipped(line, 1, line);
}
END_TEST

START_TEST(a_character_is_not_cut)
{
    char line[3000];
    const struct report_mistake *mistake;
    struct conf_file file;
    struct conf_word word;
    struct conf conf;

    for (size_t shift = 0; shift < 3; shift++) {
        memset(line, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof(line); i += 3)
            memcpy(line + i, "\xe2\x82\xac", 4);
        conf_create(&conf);
        make_word(&file, &word, line, 1, (unsigned)shift + 1501, 3);
        report_error(&conf.report, &word, "message");
        mistake = STAILQ_FIRST(&conf.report.mistakes);
        ck_assert_ptr_null(strstr(mistake->excerpt, "\\x"));
        ck_assert_ptr_nonnull(strstr(mistake->excerpt, "^\n"));
        ck_assert_int_eq(strncmp(mistake->excerpt, "...", 3), 0);
        conf_destroy(&conf);
    }
}
END_TEST

START_TEST(a_message_names_its_place)
{
    struct conf_file file;
    struct conf_word word;
    struct conf conf;
    char *report;

    conf_create(&conf);
    make_word(&file, &word, "a b;\n", 1, 3, 1);
    report_error(&conf.report, &word, "invalid value \"%s\"", "b");
    report_error(&conf.report, NULL, "no place %d", 1);
    report_warn(&conf.report, &word, "deprecated");
    report = render_report(&conf.report);
    ck_assert_str_eq(report, "invalid value \"b\" in /f.conf:1:3\n"
                             "no place 1\n"
                             "warning: deprecated in /f.conf:1:3\n");
    ck_assert_uint_eq(conf.report.error_n, 2);
    free(report);
    conf_destroy(&conf);
}
END_TEST

START_TEST(a_long_message_keeps_its_place)
{
    static const char *const fills[] = { "x", "\xe2\x82\xac" };
    struct conf_file file;
    struct conf_word word;
    struct conf conf;
    char text[9001], *report;

    for (size_t i = 0; i < countof(fills); i++) {
        for (size_t n = 0; n < sizeof(text) - 1; n += strlen(fills[i]))
            memcpy(text + n, fills[i], strlen(fills[i]) + 1);
        conf_create(&conf);
        make_word(&file, &word, "a b;\n", 1, 3, 1);
        report_error(&conf.report, &word, "%s", text);
        report = render_report(&conf.report);
        ck_assert_uint_lt(strlen(report), 1100);
        ck_assert_uint_gt(strlen(report), 900);
        memcpy(text, fills[i], strlen(fills[i]));
        strcpy(text + strlen(fills[i]), "... in /f.conf:1:3\n");
        ck_assert_ptr_nonnull(strstr(report, text));
        free(report);
        conf_destroy(&conf);
    }
}
END_TEST

/* The output when both the log and the excerpts go to one file. */
static void show_report(
    const struct conf_report *report, enum log_level level, bool excerpts, char *text, size_t size)
{
    char path[] = "/tmp/fb_report.XXXXXX";
    struct log_target target = { .fd = mkostemp(path, O_CLOEXEC | O_APPEND), .level = level };
    struct log log;
    ssize_t n;

    ck_assert_int_ne(target.fd, -1);
    ck_assert_int_eq(unlink(path), 0);
    log_init(&log, &target, 1);
    log.plain = "t";
    report_show(report, &log, excerpts ? target.fd : -1);
    n = pread(target.fd, text, size - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    close(target.fd);
}

START_TEST(mistakes_are_shown_in_their_order)
{
    struct conf_file file;
    struct conf_word word;
    struct conf conf;
    char text[1024];

    conf_create(&conf);
    make_word(&file, &word, "a b;\n", 1, 3, 1);
    show_report(&conf.report, LEVEL_INFO, true, text, sizeof(text));
    ck_assert_str_eq(text, "");

    report_warn(&conf.report, &word, "first");
    report_error(&conf.report, NULL, "second");
    report_error(&conf.report, &word, "third %%");
    show_report(&conf.report, LEVEL_INFO, true, text, sizeof(text));
    ck_assert_str_eq(text, "t: [warn] first in /f.conf:1:3\n"
                           "a b;\n"
                           "  ^\n"
                           "t: [emerg] second\n"
                           "t: [emerg] third % in /f.conf:1:3\n"
                           "a b;\n"
                           "  ^\n");
    show_report(&conf.report, LEVEL_INFO, false, text, sizeof(text));
    ck_assert_str_eq(text, "t: [warn] first in /f.conf:1:3\n"
                           "t: [emerg] second\n"
                           "t: [emerg] third % in /f.conf:1:3\n");
    /* an excerpt is not shown without a message */
    show_report(&conf.report, LEVEL_ERROR, true, text, sizeof(text));
    ck_assert_str_eq(text, "t: [emerg] second\n"
                           "t: [emerg] third % in /f.conf:1:3\n"
                           "a b;\n"
                           "  ^\n");
    conf_destroy(&conf);
}
END_TEST

static unsigned count_lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++)
        n++;
    return n;
}

START_TEST(mistakes_are_bounded_and_the_rest_is_counted)
{
    struct conf conf;
    char text[16384];

    conf_create(&conf);
    for (unsigned i = 0; i < 1000; i++)
        report_warn(&conf.report, NULL, "warning %u", i);
    for (unsigned i = 0; i < REPORT_MISTAKES_MAX; i++)
        report_error(&conf.report, NULL, "error %u", i);
    ck_assert_uint_eq(conf.report.dropped[LEVEL_EMERG], 0);
    show_report(&conf.report, LEVEL_INFO, true, text, sizeof(text));
    ck_assert_ptr_null(strstr(text, "too many errors"));

    report_error(&conf.report, NULL, "error 0"); /* known already */
    report_error(&conf.report, NULL, "another");
    report_error(&conf.report, NULL, "and another");
    ck_assert_uint_eq(conf.report.error_n, REPORT_MISTAKES_MAX + 3);
    show_report(&conf.report, LEVEL_INFO, true, text, sizeof(text));
    ck_assert_uint_eq(count_lines(text), 2 * REPORT_MISTAKES_MAX + 2);
    ck_assert_ptr_nonnull(strstr(text, "t: [emerg] error 49\n"));
    ck_assert_ptr_nonnull(strstr(text, "t: [emerg] too many errors, 2 more not shown\n"));
    ck_assert_ptr_nonnull(strstr(text, "t: [warn] too many warnings, 950 more not shown\n"));
    conf_destroy(&conf);
}
END_TEST

START_TEST(the_same_at_the_same_place_is_kept_once)
{
    struct conf_file file;
    struct conf_word word, other;
    struct conf conf;
    char *report;

    conf_create(&conf);
    make_word(&file, &word, "a b;\n", 1, 3, 1);
    make_word(&file, &other, "a b;\n", 1, 1, 1);
    for (unsigned i = 0; i < 3; i++) {
        report_error(&conf.report, &word, "message");
        report_warn(&conf.report, &word, "message");
        report_error(&conf.report, &other, "message");
    }
    report = render_report(&conf.report);
    ck_assert_str_eq(report, "message in /f.conf:1:3\n"
                             "warning: message in /f.conf:1:3\n"
                             "message in /f.conf:1:1\n");
    ck_assert_uint_eq(conf.report.error_n, 6);
    free(report);
    conf_destroy(&conf);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, an_excerpt_marks_its_word, 0, countof(rows));
    tcase_add_test(tcase, a_long_line_is_clipped_around_its_word);
    tcase_add_test(tcase, a_character_is_not_cut);
    tcase_add_test(tcase, a_message_names_its_place);
    tcase_add_test(tcase, a_long_message_keeps_its_place);
    tcase_add_test(tcase, mistakes_are_shown_in_their_order);
    tcase_add_test(tcase, mistakes_are_bounded_and_the_rest_is_counted);
    tcase_add_test(tcase, the_same_at_the_same_place_is_kept_once);
}

TEST_MAIN("report", add_tests)

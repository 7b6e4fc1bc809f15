/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks and directives: trees of right texts, mistakes of wrong ones, and going on after a
 * mistake. */
#include "conf/render.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct row {
    const char *text;
    const char *tree;
    const char *report; /* messages, or "" */
};

static const struct row rows[] = {
    { "", "", "" },
    { "# nothing\n", "", "" },
    { "a;", "a;", "" },
    { "a b c; d;", "a<b><c>; d;", "" },
    { "events {}", "events{}", "" },
    { "a { b; c d { e; } } f;", "a{b; c<d>{e;}} f;", "" },
    { "\xef\xbb\xbf"
      "a;",
        "a;", "" },
    { "\xef\xbb\xbf", "", "" },
    { "a;\r\nb {\r\n}\r\n", "a; b{}", "" },
    { "\"\" '';", "<>;", "" },
    /* directives before a mistake are kept, the block around it is not */
    { "a; }", "a;", "unexpected \"}\", no block is open in t:1:4\n" },
    { "a {} } b;", "a{}", "unexpected \"}\", no block is open in t:1:6\n" },
    { "a; ;", "a;", "unexpected \";\", expecting a directive in t:1:4\n" },
    { "a {};", "a{}", "unexpected \";\", expecting a directive in t:1:5\n" },
    { "a { b; ;", "a{b;}", "unexpected \";\", expecting a directive or \"}\" in t:1:8\n" },
    { "{ a; }", "", "unexpected \"{\", expecting a directive in t:1:1\n" },
    { "a { { b; }", "a{}", "unexpected \"{\", expecting a directive or \"}\" in t:1:5\n" },
    { "a { b; c d }\ne;", "a{b;}", "directive \"c\" is not terminated by \";\" in t:1:10\n" },
    { "a { b\n}\n", "a{}", "directive \"b\" is not terminated by \";\" in t:1:5\n" },
    { "a;\nb c", "a;",
        "unexpected end of parameter, expecting \";\": directive \"b\" is not terminated in "
        "t:2:3\n" },
    { "a {\n b;\n c {\n d;\n", "a{b; c{d;}}",
        "unexpected end of parameter, expecting \"}\" to close \"c\" opened at line 3 in t:5:1\n" },
    { "a {\n b;\n c {\n d;\n }", "a{b; c{d;}}",
        "unexpected end of parameter, expecting \"}\" to close \"a\" opened at line 1 in t:5:3\n" },
    { "a; b 'c; d;", "a;",
        "unexpected end of parameter, the quote (') opened at line 1 is not closed in t:1:6\n" },
};

START_TEST(a_text_becomes_a_tree)
{
    const struct row *row = &rows[_i];
    struct conf conf;
    char *tree, *report;

    conf_create(&conf);
    tree = render_block(conf_parse_text(&conf.source, "t", row->text, strlen(row->text)));
    report = render_report(&conf.report);
    ck_assert_str_eq(tree, row->tree);
    ck_assert_str_eq(report, row->report);
    ck_assert_uint_eq(conf.report.error_n, *row->report != '\0');
    free(tree);
    free(report);
    conf_destroy(&conf);
}
END_TEST

/* "a{a{...}}" of the given depth. */
static char *nested(unsigned depth)
{
    char *text = malloc(depth * 3 + 1), *p = text;

    ck_assert_ptr_nonnull(text);
    for (unsigned i = 0; i < depth; i++)
        p = stpcpy(p, "a{");
    for (unsigned i = 0; i < depth; i++)
        p = stpcpy(p, "}");
    return text;
}

START_TEST(the_depth_of_blocks_is_bounded)
{
    static const struct {
        unsigned depth;
        unsigned errors;
    } cases[] = { { CONF_DEPTH_MAX, 0 }, { CONF_DEPTH_MAX + 1, 1 }, { 100000, 1 } };

    for (size_t i = 0; i < countof(cases); i++) {
        char *text = nested(cases[i].depth), *report;
        struct conf conf;

        conf_create(&conf);
        ck_assert_ptr_nonnull(conf_parse_text(&conf.source, "t", text, strlen(text)));
        ck_assert_uint_eq(conf.report.error_n, cases[i].errors);
        report = render_report(&conf.report);
        if (cases[i].errors > 0)
            ck_assert_str_eq(report,
                "block \"a\" is nested too deeply: at most 64 blocks can contain it in t:1:129\n");
        free(report);
        free(text);
        conf_destroy(&conf);
    }
}
END_TEST

START_TEST(a_directive_may_have_many_words)
{
    enum { N = 100000 };
    char *text = malloc(N * 2 + 2);
    const struct conf_directive *directive;
    struct conf_block *block;
    struct conf conf;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < N; i++)
        memcpy(text + i * 2, "w ", 2);
    memcpy(text + N * 2, ";", 2);
    conf_create(&conf);
    block = conf_parse_text(&conf.source, "t", text, N * 2 + 1);
    free(text); /* the tree does not need it */

    ck_assert_ptr_nonnull(block);
    directive = STAILQ_FIRST(&block->directives);
    ck_assert_uint_eq(directive->arg_n, N - 1);
    ck_assert_uint_eq(directive->args[N - 2].column, N * 2 - 1);
    ck_assert_str_eq(directive->args[N - 2].text, "w");
    ck_assert_ptr_null(directive->block);
    conf_destroy(&conf);
}
END_TEST

START_TEST(a_long_name_does_not_hide_the_rest_of_its_message)
{
    char text[5000], *report;
    struct conf conf;

    memset(text, 'n', sizeof(text));
    conf_create(&conf);
    conf_parse_text(&conf.source, "t", text, sizeof(text));
    report = render_report(&conf.report);
    ck_assert_ptr_nonnull(strstr(report, "nnn\" is not terminated in t:1:1\n"));
    ck_assert_uint_lt(strlen(report), 300);
    free(report);
    conf_destroy(&conf);
}
END_TEST

START_TEST(a_text_is_no_file_of_the_source)
{
    struct conf_block *block;
    struct conf conf;

    conf_create(&conf);
    block = conf_parse_text(&conf.source, "command line", "a;", 2);
    ck_assert_ptr_nonnull(block);
    ck_assert_str_eq(STAILQ_FIRST(&block->directives)->name.file->name, "command line");
    ck_assert(STAILQ_EMPTY(&conf.source.files));
    conf_destroy(&conf);
}
END_TEST

/* Files in a directory of their own. */
struct files {
    char directory[32];
    char path[64];
    char *report;
    struct conf conf;
};

static void set_up(struct files *files)
{
    strcpy(files->directory, "/tmp/fb_conf.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(files->directory));
    snprintf(files->path, sizeof(files->path), "%s/f", files->directory);
    conf_create(&files->conf);
}

static void tear_down(struct files *files)
{
    conf_destroy(&files->conf);
    remove(files->path);
    ck_assert_int_eq(rmdir(files->directory), 0);
}

static void write_file(const struct files *files, const char *text, size_t size)
{
    FILE *file = fopen(files->path, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(a_file_is_read_whole)
{
    static const char text[] = "\xef\xbb\xbf"
                               "a b;\nc {\n}";
    struct conf_block *block;
    struct files files;
    char *tree, *dump;
    size_t size;
    FILE *out = open_memstream(&dump, &size);

    set_up(&files);
    write_file(&files, text, sizeof(text) - 1);
    block = conf_parse_file(&files.conf.source, files.path, NULL);
    tree = render_block(block);
    ck_assert_str_eq(tree, "a<b>; c{}");
    free(tree);
    ck_assert_uint_eq(files.conf.report.error_n, 0);
    ck_assert_str_eq(STAILQ_FIRST(&block->directives)->name.file->name, files.path);
    ck_assert_uint_eq(STAILQ_FIRST(&block->directives)->name.column, 1);

    /* shown by -T, once */
    ck_assert_ptr_nonnull(conf_parse_file(&files.conf.source, files.path, NULL));
    conf_dump(&files.conf.source, out);
    fclose(out);
    ck_assert_int_eq(strncmp(dump, "# configuration file /tmp/fb_conf.", 34), 0);
    ck_assert_str_eq(strchr(dump, ':'), ":\na b;\nc {\n}\n");
    free(dump);
    tear_down(&files);
}
END_TEST

/* Expects a single message about the file, without the path. */
static void check_refused(struct files *files, const char *before, const char *behind)
{
    char expected[256], *report;

    ck_assert_ptr_null(conf_parse_file(&files->conf.source, files->path, NULL));
    snprintf(expected, sizeof(expected), "%s\"%s\"%s\n", before, files->path, behind);
    report = render_report(&files->conf.report);
    ck_assert_str_eq(report, expected);
    free(report);
    ck_assert(STAILQ_EMPTY(&files->conf.source.files));
}

START_TEST(a_file_that_is_not_there_is_refused)
{
    struct files files;

    set_up(&files);
    check_refused(&files, "open() ", " failed (2: No such file or directory)");
    tear_down(&files);
}
END_TEST

START_TEST(a_file_that_may_not_be_read_is_refused)
{
    const uid_t user = geteuid();
    struct files files;

    if (user == 0) /* root may read anything */
        ck_assert_int_eq(seteuid(65534), 0);
    set_up(&files);
    write_file(&files, "a;", 2);
    ck_assert_int_eq(chmod(files.path, 0), 0);
    check_refused(&files, "open() ", " failed (13: Permission denied)");
    tear_down(&files);
    ck_assert_int_eq(seteuid(user), 0);
}
END_TEST

START_TEST(a_directory_is_refused)
{
    struct files files;

    set_up(&files);
    ck_assert_int_eq(mkdir(files.path, 0700), 0);
    check_refused(&files, "read() ", " failed (21: Is a directory)");
    tear_down(&files);
}
END_TEST

START_TEST(a_fifo_is_refused_at_once)
{
    struct files files;

    set_up(&files);
    ck_assert_int_eq(mkfifo(files.path, 0600), 0);
    check_refused(&files, "", " is not a regular file");
    tear_down(&files);
}
END_TEST

START_TEST(a_device_is_refused)
{
    struct files files;

    set_up(&files);
    ck_assert_int_eq(symlink("/dev/zero", files.path), 0);
    check_refused(&files, "", " is not a regular file");
    tear_down(&files);
}
END_TEST

START_TEST(a_huge_file_is_refused)
{
    struct files files;

    set_up(&files);
    write_file(&files, "", 0);
    ck_assert_int_eq(truncate(files.path, CONF_FILE_MAX + 1), 0);
    check_refused(&files, "", " is larger than 16 MiB");
    tear_down(&files);
}
END_TEST

START_TEST(a_file_of_the_greatest_size_is_read)
{
    struct files files;
    char *report;

    set_up(&files);
    write_file(&files, "", 0);
    ck_assert_int_eq(truncate(files.path, CONF_FILE_MAX), 0);
    ck_assert_ptr_nonnull(conf_parse_file(&files.conf.source, files.path, NULL));
    report = render_report(&files.conf.report);
    ck_assert_int_eq(strncmp(report, "unexpected NUL byte, expecting text in ", 39), 0);
    free(report);
    tear_down(&files);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_text_becomes_a_tree, 0, countof(rows));
    tcase_add_test(tcase, the_depth_of_blocks_is_bounded);
    tcase_add_test(tcase, a_directive_may_have_many_words);
    tcase_add_test(tcase, a_long_name_does_not_hide_the_rest_of_its_message);
    tcase_add_test(tcase, a_text_is_no_file_of_the_source);
    tcase_add_test(tcase, a_file_is_read_whole);
    tcase_add_test(tcase, a_file_that_is_not_there_is_refused);
    tcase_add_test(tcase, a_file_that_may_not_be_read_is_refused);
    tcase_add_test(tcase, a_directory_is_refused);
    tcase_add_test(tcase, a_fifo_is_refused_at_once);
    tcase_add_test(tcase, a_device_is_refused);
    tcase_add_test(tcase, a_huge_file_is_refused);
    tcase_add_test(tcase, a_file_of_the_greatest_size_is_read);
}

TEST_MAIN("parser", add_tests)

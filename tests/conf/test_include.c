/* SPDX-License-Identifier: BSD-2-Clause */
/* Included files: patterns, order, depth, loops, and the place reported for a mistake in them. */
#include "conf/render.h"
#include "support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A directory of configuration files, and a reader that follows "include" as the settings do. */
struct tree {
    char directory[32], path[128];
    struct conf conf;
    char seen[4096]; /* names of all but the includes, in the order of the parser */
    unsigned include_n;
    int result;
};

static void set_up(struct tree *tree)
{
    memset(tree, 0, sizeof(*tree));
    strcpy(tree->directory, "/tmp/fb_conf.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(tree->directory));
    conf_create(&tree->conf);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static void tear_down(struct tree *tree)
{
    conf_destroy(&tree->conf);
    ck_assert_int_eq(nftw(tree->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Valid until the next call. */
static const char *path_of(struct tree *tree, const char *name)
{
    snprintf(tree->path, sizeof(tree->path), "%s/%s", tree->directory, name);
    return tree->path;
}

static void add_file(struct tree *tree, const char *name, const char *text)
{
    FILE *file = fopen(path_of(tree, name), "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int read_block(void *arg, struct conf_block *block)
{
    const struct conf_directive *directive;
    struct tree *tree = arg;
    int rc = 0;

    STAILQ_FOREACH (directive, &block->directives, link) {
        if (strcmp(directive->name.text, "include") == 0) {
            const struct conf_word *word = &directive->args[0];
            char pattern[256];

            tree->include_n++;
            snprintf(pattern, sizeof(pattern), "%s/%s", tree->directory, word->text);
            if (conf_include(&tree->conf.source, word, pattern, read_block, tree) == -1)
                rc = -1;
        } else if (strlen(tree->seen) + strlen(directive->name.text) < sizeof(tree->seen)) {
            strcat(tree->seen, directive->name.text);
        }
    }
    return rc;
}

/* Reads "main", added with the given text. */
static void read_main(struct tree *tree, const char *text)
{
    struct conf_block *block;

    add_file(tree, "main", text);
    block = conf_parse_file(&tree->conf.source, path_of(tree, "main"), NULL);
    ck_assert_ptr_nonnull(block);
    tree->result = read_block(tree, block);
}

/* The messages, with the directory's name taken out. */
static void check_report(const struct tree *tree, const char *expected)
{
    char *report = render_report(&tree->conf.report), *p;
    size_t n = strlen(tree->directory);

    while ((p = strstr(report, tree->directory)) != NULL)
        memmove(p, p + n, strlen(p + n) + 1);
    ck_assert_str_eq(report, expected);
    free(report);
}

START_TEST(a_file_takes_the_place_of_its_include)
{
    struct tree tree;

    set_up(&tree);
    add_file(&tree, "other", "b; c;");
    read_main(&tree, "a; include other; d;");
    ck_assert_str_eq(tree.seen, "abcd");
    ck_assert_int_eq(tree.result, 0);
    check_report(&tree, "");
    tear_down(&tree);
}
END_TEST

START_TEST(a_glob_is_read_in_the_order_of_names)
{
    struct tree tree;

    set_up(&tree);
    add_file(&tree, "20.conf", "c;");
    add_file(&tree, "10.conf", "b;");
    add_file(&tree, "9.conf", "d;");
    add_file(&tree, ".0.conf", "hidden;");
    add_file(&tree, "5.conf~", "backup;");
    read_main(&tree, "a; include *.conf; e; include [12]0.con?;");
    ck_assert_str_eq(tree.seen, "abcdebc");
    ck_assert_int_eq(tree.result, 0);
    tear_down(&tree);
}
END_TEST

START_TEST(a_pattern_may_match_nothing)
{
    struct tree tree;

    set_up(&tree);
    read_main(&tree, "a; include *.conf; include none/*; include main/*; b;");
    ck_assert_str_eq(tree.seen, "ab");
    ck_assert_int_eq(tree.result, 0);
    check_report(&tree, "");
    tear_down(&tree);
}
END_TEST

START_TEST(a_path_must_exist)
{
    struct tree tree;

    set_up(&tree);
    read_main(&tree, "a;\ninclude other;\nb;");
    ck_assert_str_eq(tree.seen, "ab");
    ck_assert_int_eq(tree.result, -1);
    check_report(&tree, "open() \"/other\" failed (2: No such file or directory) in /main:2:9\n");
    tear_down(&tree);
}
END_TEST

START_TEST(a_directory_that_may_not_be_read_is_reported)
{
    const uid_t user = geteuid();
    struct tree tree;

    if (user == 0) /* root may read anything */
        ck_assert_int_eq(seteuid(65534), 0);
    set_up(&tree);
    ck_assert_int_eq(mkdir(path_of(&tree, "secret"), 0300), 0);
    read_main(&tree, "include secret/*.conf;");
    ck_assert_int_eq(tree.result, -1);
    check_report(&tree, "glob() \"/secret/*.conf\" failed (13: Permission denied) in /main:1:9\n");
    tear_down(&tree);
    ck_assert_int_eq(seteuid(user), 0);
}
END_TEST

START_TEST(every_file_of_a_glob_is_read_whatever_the_others_are)
{
    struct tree tree;

    set_up(&tree);
    add_file(&tree, "1.conf", "b; }");
    ck_assert_int_eq(mkdir(path_of(&tree, "2.conf"), 0700), 0);
    ck_assert_int_eq(symlink("nowhere", path_of(&tree, "3.conf")), 0);
    add_file(&tree, "4.conf", "c {");
    add_file(&tree, "5.conf", "d;");
    read_main(&tree, "a;\ninclude *.conf;\ne;");
    ck_assert_str_eq(tree.seen, "abcde");
    ck_assert_int_eq(tree.result, -1);
    check_report(&tree,
        "unexpected \"}\", no block is open in /1.conf:1:4\n"
        "read() \"/2.conf\" failed (21: Is a directory) in /main:2:9\n"
        "open() \"/3.conf\" failed (2: No such file or directory) in /main:2:9\n"
        "unexpected end of file, expecting \"}\" to close \"c\" opened at line 1 in /4.conf:1:4\n");
    tear_down(&tree);
}
END_TEST

START_TEST(the_mistake_of_a_file_is_reported_once_a_place)
{
    struct tree tree;

    set_up(&tree);
    add_file(&tree, "snippet", "a; ;");
    read_main(&tree, "include snippet; include snippet;");
    ck_assert_str_eq(tree.seen, "aa");
    ck_assert_int_eq(tree.result, -1);
    ck_assert_uint_eq(tree.conf.report.error_n, 2);
    ck_assert_uint_eq(tree.conf.report.dropped[LEVEL_EMERG], 0);
    check_report(&tree, "unexpected \";\", expecting a directive in /snippet:1:4\n");
    tear_down(&tree);
}
END_TEST

START_TEST(a_file_that_includes_itself_is_reported_once)
{
    struct tree tree;

    set_up(&tree);
    read_main(&tree, "a;\ninclude main; include main;\nb;");
    ck_assert_str_eq(tree.seen, "ab");
    ck_assert_int_eq(tree.result, -1);
    check_report(&tree, "\"/main\" includes itself in /main:2:9\n"
                        "\"/main\" includes itself in /main:2:23\n");
    tear_down(&tree);
}
END_TEST

START_TEST(files_that_include_each_other_end_soon)
{
    struct tree tree;
    char name[16];

    /* without a bound, the files of all permutations */
    set_up(&tree);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "%02u.conf", i);
        add_file(&tree, name, "x; include *.conf; include *.conf;");
    }
    read_main(&tree, "include *.conf; include none;");
    ck_assert_int_eq(tree.result, -1);
    ck_assert_uint_lt(tree.include_n, 100);
    check_report(&tree, "\"/00.conf\" includes itself in /00.conf:1:12\n"
                        "open() \"/none\" failed (2: No such file or directory) in /main:1:25\n");
    tear_down(&tree);
}
END_TEST

/* "main" includes "1", which includes "2", ... up to the n-th. */
static void read_chain(struct tree *tree, unsigned n)
{
    char name[16], text[64];

    for (unsigned i = 1; i <= n; i++) {
        snprintf(name, sizeof(name), "%u", i);
        snprintf(text, sizeof(text), i < n ? "x; include %u;" : "x;", i + 1);
        add_file(tree, name, text);
    }
    read_main(tree, "include 1;");
}

START_TEST(the_depth_of_includes_is_bounded)
{
    struct tree tree;

    set_up(&tree);
    read_chain(&tree, CONF_INCLUDE_MAX);
    ck_assert_int_eq(tree.result, 0);
    ck_assert_uint_eq(strlen(tree.seen), CONF_INCLUDE_MAX);
    check_report(&tree, "");
    tear_down(&tree);

    set_up(&tree);
    read_chain(&tree, CONF_INCLUDE_MAX + 1);
    ck_assert_int_eq(tree.result, -1);
    ck_assert_uint_eq(strlen(tree.seen), CONF_INCLUDE_MAX);
    check_report(&tree, "\"/17\" is included too deeply, does it include itself? in /16:1:12\n");
    tear_down(&tree);
}
END_TEST

START_TEST(a_loop_through_other_names_is_reported_once)
{
    struct tree tree;

    set_up(&tree);
    ck_assert_int_eq(symlink(".", path_of(&tree, "d")), 0);
    add_file(&tree, "1", "x; include d/d/2; include d/d/2;");
    ck_assert_int_eq(symlink("1", path_of(&tree, "2")), 0);
    read_main(&tree, "include 1;");
    ck_assert_int_eq(tree.result, -1);
    ck_assert_uint_eq(tree.conf.report.error_n, 1);
    ck_assert_uint_lt(tree.include_n, 100);
    tear_down(&tree);
}
END_TEST

START_TEST(a_dump_shows_each_file_once)
{
    static const char *const names[] = { "/main:\n", "/other:\n", "/third:\n" };
    struct tree tree;
    char *text, *p;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    set_up(&tree);
    add_file(&tree, "other", "b;\n");
    add_file(&tree, "third", "c {");
    read_main(&tree, "include other; include other; include third;\n");
    conf_dump(&tree.conf.source, out);
    ck_assert_int_eq(fclose(out), 0);
    p = text;
    for (size_t i = 0; i < countof(names); i++) {
        p = strstr(p, "# configuration file ");
        ck_assert_ptr_nonnull(p);
        p += strlen("# configuration file ") + strlen(tree.directory);
        ck_assert_int_eq(strncmp(p, names[i], strlen(names[i])), 0);
    }
    ck_assert_ptr_null(strstr(p, "# configuration file "));
    ck_assert_str_eq(p, "/third:\nc {\n");
    free(text);
    tear_down(&tree);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_file_takes_the_place_of_its_include);
    tcase_add_test(tcase, a_glob_is_read_in_the_order_of_names);
    tcase_add_test(tcase, a_pattern_may_match_nothing);
    tcase_add_test(tcase, a_path_must_exist);
    tcase_add_test(tcase, a_directory_that_may_not_be_read_is_reported);
    tcase_add_test(tcase, every_file_of_a_glob_is_read_whatever_the_others_are);
    tcase_add_test(tcase, the_mistake_of_a_file_is_reported_once_a_place);
    tcase_add_test(tcase, a_file_that_includes_itself_is_reported_once);
    tcase_add_test(tcase, files_that_include_each_other_end_soon);
    tcase_add_test(tcase, the_depth_of_includes_is_bounded);
    tcase_add_test(tcase, a_loop_through_other_names_is_reported_once);
    tcase_add_test(tcase, a_dump_shows_each_file_once);
}

TEST_MAIN("include", add_tests)

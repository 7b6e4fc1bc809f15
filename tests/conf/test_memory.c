/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser when memory runs out. */
#include "base/scarce.h"
#include "conf/render.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int count_blocks(void *arg, struct conf_block *block)
{
    ck_assert_ptr_nonnull(block);
    ++*(unsigned *)arg;
    return 0;
}

/* Parses a text and includes a directory's files. */
static void parse_all(struct conf *conf, const char *text, const char *directory)
{
    struct conf_block *block;
    struct conf_directive *directive;
    unsigned n = 0;
    char pattern[64];

    block = conf_parse_text(&conf->source, "t", text, strlen(text));
    if (block == NULL)
        return;
    free(render_block(block));
    directive = STAILQ_FIRST(&block->directives);
    if (directive == NULL)
        return;
    snprintf(pattern, sizeof(pattern), "%s/*", directory);
    conf_include(&conf->source, &directive->name, pattern, count_blocks, &n);
    ck_assert(n == 1 || conf->report.error_n > 0);
}

static const struct {
    const char *text;
    unsigned errors;
} rows[] = {
    { "a b 'c'; d { e; f g {} }", 0 },
    { "a b; c 'd", 1 },
    { "a; b { c }", 1 },
    { "a;; b", 1 },
};

/* Whether a request for memory failed; every failure must be reported. */
static bool try_parse(unsigned row, const char *directory, unsigned fails_at, bool for_good)
{
    struct scarce scarce;
    struct conf conf;

    scarce_init(&scarce);
    conf_create_from(&conf, &scarce.memory);
    scarce.for_good = for_good;
    scarce_restart(&scarce, fails_at);
    parse_all(&conf, rows[row].text, directory);
    if (scarce.failed)
        ck_assert_uint_gt(conf.report.error_n, 0);
    else
        ck_assert_uint_eq(conf.report.error_n, rows[row].errors);
    conf_destroy(&conf);
    return scarce.failed;
}

START_TEST(memory_may_run_out_at_any_time)
{
    char directory[] = "/tmp/memory.XXXXXX", path[64];
    FILE *file;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/1", directory);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("x; y { z; }\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);

    for (int for_good = 0; for_good < 2; for_good++) {
        unsigned n = 1;

        while (try_parse((unsigned)_i, directory, n, for_good))
            n++;
        ck_assert_uint_gt(n, 10);
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(mistakes_without_memory_are_counted)
{
    char path[] = "/tmp/memory.XXXXXX", text[256];
    struct log_target target = { .fd = mkstemp(path), .level = LEVEL_INFO };
    struct scarce scarce;
    struct log log;
    struct conf conf;
    ssize_t n;

    ck_assert_int_ne(target.fd, -1);
    ck_assert_int_eq(unlink(path), 0);
    log_init(&log, &target, 1);
    log.plain = "t";
    scarce_init(&scarce);
    conf_create_from(&conf, &scarce.memory);
    report_error(&conf.report, NULL, "kept");
    scarce.for_good = true;
    scarce_restart(&scarce, 1);
    report_error(&conf.report, NULL, "first");
    report_warn(&conf.report, NULL, "second");
    report_error(&conf.report, NULL, "third");
    ck_assert_uint_eq(conf.report.error_n, 3);
    report_show(&conf.report, &log, target.fd);
    conf_destroy(&conf);

    n = pread(target.fd, text, sizeof(text) - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, "t: [emerg] kept\n"
                           "t: [emerg] out of memory, errors not shown: 2\n"
                           "t: [warn] out of memory, warnings not shown: 1\n");
    close(target.fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, memory_may_run_out_at_any_time, 0, countof(rows));
    tcase_add_test(tcase, mistakes_without_memory_are_counted);
}

TEST_MAIN("memory", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The suggestion for a misspelt word: the nearest of the names, if it is near enough. */
#include "base/compiler.h"
#include "conf/report.h"
#include "support/test.h"

#include <string.h>

static const char *const directives[] = { "worker_processes", "worker_connections", "error_log",
    "listen", "server", "include", "user", "env", "pid", "use", "on", "off", "send", "sent" };

/* The nearest of the candidates, or NULL. */
static const char *nearest_of(const char *word, const char *const *candidates, size_t n)
{
    struct nearest near = { .word = word };

    for (size_t i = 0; i < n; i++)
        nearest_try(&near, candidates[i]);
    return near.found;
}

static const struct {
    const char *word;
    const char *nearest; /* the nearest, or NULL */
} rows[] = {
    { "listen", "listen" },
    /* a change, a letter too few, a letter too many, two swapped */
    { "lispen", "listen" },
    { "liste", "listen" },
    { "listenn", "listen" },
    { "lsiten", "listen" },
    { "wroker_proceses", "worker_processes" },
    { "worker_process", "worker_processes" },
    { "worker_connection", "worker_connections" },
    { "eror_log", "error_log" },
    { "error_logs", "error_log" },
    { "Server", "server" },
    { "serevr", "server" },
    { "usr", "user" },
    { "evn", "env" },
    { "onn", "on" },
    { "o", "on" },
    /* the first of equals */
    { "senx", "send" },
    { "of", "on" },
    /* further than a third of the word */
    { "lispem_", NULL },
    { "proxy_pass", NULL },
    { "xxrker_pxxxesses", NULL },
    { "enx", "env" },
    { "abc", NULL },
    { "x", NULL },
    { "xy", NULL },
    { "", NULL },
};

START_TEST(a_misspelt_word_finds_what_was_meant)
{
    ck_assert_pstr_eq(nearest_of(rows[_i].word, directives, countof(directives)), rows[_i].nearest);
}
END_TEST

START_TEST(words_of_any_length_are_taken)
{
    char word[1000], candidate[1000];
    const char *const candidates[] = { candidate, "", "listen" };

    memset(word, 'w', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    memcpy(candidate, word, sizeof(word));
    ck_assert_ptr_null(nearest_of(word, candidates, countof(candidates)));

    /* the longest that is compared */
    word[64] = candidate[64] = '\0';
    word[1] = 'x';
    ck_assert_ptr_eq(nearest_of(word, candidates, countof(candidates)), candidate);

    ck_assert_str_eq(nearest_of("lisen", candidates, countof(candidates)), "listen");
}
END_TEST

START_TEST(without_candidates_nothing_is_near)
{
    ck_assert_ptr_null(nearest_of("listen", NULL, 0));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, a_misspelt_word_finds_what_was_meant, 0, countof(rows));
    tcase_add_test(tcase, words_of_any_length_are_taken);
    tcase_add_test(tcase, without_candidates_nothing_is_near);
}

TEST_MAIN("nearest", add_tests)

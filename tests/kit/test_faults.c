/* SPDX-License-Identifier: BSD-2-Clause */
/* The kit finds the mistakes, and reports the kind and the place. */
#include "kit/faulty.h"
#include "kit/printed.h"
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

static const fb_test_step script[] = {
    FB_TEST_SAY("one\n"),
    FB_TEST_EXPECT("ONE\n"),
    FB_TEST_SAY("two\nthree\n"),
    FB_TEST_EXPECT("TWO\nTHREE\n"),
    FB_TEST_SHUT(),
    FB_TEST_EXPECT_CLOSED(),
    FB_TEST_PEER(1),
    FB_TEST_SAY("hello\n"),
    FB_TEST_EXPECT("HELLO\n"),
};

static const struct {
    const char *mistake, *printed;
} mistakes[] = {
    { "leaks_descriptor", "faulty: as it is: descriptor " },
    { "leaks_descriptor", LINUX_SYSTEM ? " (/dev/null) was not closed\n" : ") was not closed\n" },
    { "uses_ended", "faulty: as it is: protocol \"faulty\" called fb_write() on a "
                    "connection that has ended\n" },
    { "takes_calls",
        "faulty: byte by byte: step 1: expected \"ONE\\n\", heard \"O\\nN\\nE\\n\\n\"\n" },
    { "drops_rest", "faulty: byte by byte: step 1: expected \"ONE\\n\", heard \"\\n\"\n" },
    { "drops_rest", "faulty: cut at byte 2: step 1: expected \"ONE\\n\", heard \"E\\n\"\n" },
    { "drops_rest", "faulty: cut at byte 9: step 3: expected \"TWO\\nTHREE\\n\", heard "
                    "\"TWO\\nHREE\\n\"\n" },
    { "consumes_too_much", "faulty: as it is: step 1: expected \"ONE\\n\", heard nothing\n" },
    { "consumes_too_much", "faulty: as it is: logged [alert] *1 \"faulty\" consumed 5 bytes of 4" },
    { "leaks_at_start", " fails: descriptor " },
    { "changes_lent", "faulty: a peer that stops reading: step 3: expected \"TWO\\nTHREE\\n\"" },
    { "gives_up", "faulty: a peer that stops reading: step 3: expected \"TWO\\nTHREE\\n\", heard "
                  "\"TWO\\n\"\n" },
    { "answers_shortage", " fails: step 1: expected \"ONE\\n\", heard \"no memory\\n\"\n" },
    { "answers_twice", "faulty: as it is: step 3: expected \"TWO\\nTHREE\\n\", heard "
                       "\"TWO\\nTWO\\n" },
    { "never_rests", "faulty: as it is: the worker does not come to rest\n" },
    { "logs_alert", "faulty: as it is: logged [alert] *1 this must not be, client: 192.0.2.1, "
                    "server: 192.0.2.80:80\n" },
    { "forgets_to_close",
        "faulty: as it is: step 5: expected the connection to be closed, it is open\n" },
};

/* Wrong uses of memory, which may end the program at once, as under the address sanitizer. */
static const struct {
    const char *mistake, *printed;
} overruns[] = {
    { "overruns_state", "faulty: as it is: protocol \"faulty\" went beyond the 21 bytes of its "
                        "conn_state, in \"data\"\n" },
    { "overruns_memory", "faulty: as it is: protocol \"faulty\" went beyond the 21 bytes of memory "
                         "of fb_alloc(), in \"data\"\n" },
    { "uses_temporary", "faulty: as it is: wrote to memory of " },
};

/* The failures, with what was printed in `text`. */
static int converse_faulty(const char *mistake, char *text)
{
    char directive[64];
    struct printed printed;
    int failures;

    snprintf(directive, sizeof(directive), "faulty %s;", mistake);
    printed_begin(&printed);
    failures = fb_test_converse(&fb_protocol_faulty, directive, FB_TEST_SCRIPT(script));
    printed_end(&printed, text);
    return failures;
}

START_TEST(mistakes_are_found)
{
    char text[PRINTED_MAX];
    int failures = converse_faulty(mistakes[_i].mistake, text);

    ck_assert_msg(failures > 0, "%s is not found", mistakes[_i].mistake);
    ck_assert_msg(strstr(text, mistakes[_i].printed) != NULL, "%s says\n%sand not\n%s",
        mistakes[_i].mistake, text, mistakes[_i].printed);
}
END_TEST

START_TEST(overruns_are_found)
{
    char text[PRINTED_MAX] = "";
    pid_t child = fork();
    int status;

    ck_assert_int_ne(child, -1);
    if (child == 0) {
        if (SANITIZED)
            close(STDERR_FILENO); /* the sanitizer's report is nobody's business */
        if (converse_faulty(overruns[_i].mistake, text) == 0)
            _exit(0);
        _exit(strstr(text, overruns[_i].printed) != NULL ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(!WIFEXITED(status) || WEXITSTATUS(status) != 0, "%s", overruns[_i].mistake);
}
END_TEST

START_TEST(right_is_right)
{
    char text[PRINTED_MAX];

    ck_assert_int_eq(converse_faulty("none", text), 0);
    ck_assert_str_eq(text, "");
}
END_TEST

/* A protocol may say something else without memory, if the test's `excuse` says so. */
START_TEST(excuses_are_accepted)
{
    static const char *const excuses[] = { "no memory\n", "no", "", NULL, "memory", "yes" };
    char text[PRINTED_MAX];
    struct printed printed;

    for (int i = 0; i < 6; i++) {
        const fb_test_options options = {
            .size = sizeof(options), .server = "faulty answers_shortage;", .excuse = excuses[i]
        };
        int failures;

        printed_begin(&printed);
        failures = fb_test_converse_with(&fb_protocol_faulty, &options, FB_TEST_SCRIPT(script));
        printed_end(&printed, text);
        ck_assert_msg((failures == 0) == (i < 3), "excuse %d:\n%s", i, text);
    }
}
END_TEST

START_TEST(descriptors_of_others_are_watched)
{
    char text[PRINTED_MAX];

    faulty_descriptor = dup(STDIN_FILENO);
    ck_assert_int_ne(faulty_descriptor, -1);
    ck_assert_int_gt(converse_faulty("closes_descriptor", text), 0);
    ck_assert_ptr_nonnull(strstr(text, ", which was open before the start, was closed\n"));
}
END_TEST

START_TEST(each_fault_is_counted)
{
    char text[PRINTED_MAX];
    struct printed printed;
    fb_test *test;

    printed_begin(&printed);
    test = fb_test_start(&fb_protocol_faulty, "faulty uses_ended;");
    for (int i = 0; i < 3; i++) {
        fb_test_shut(fb_test_connect(test));
        fb_test_run(test);
        ck_assert_int_eq(fb_test_faults(test), i);
    }
    ck_assert_int_eq(fb_test_end(&test), 2);
    ck_assert_ptr_null(test);
    printed_end(&printed, text);
    ck_assert_str_eq(text,
        "faulty: protocol \"faulty\" called fb_write() on a connection that has ended\n"
        "faulty: protocol \"faulty\" called fb_write() on a connection that has ended\n");
}
END_TEST

START_TEST(so_many_failures_are_enough)
{
    static const fb_test_step wrong[] = { FB_TEST_SAY("x\n"), FB_TEST_EXPECT("X\n"),
        FB_TEST_RESET() };
    char text[PRINTED_MAX];
    struct printed printed;
    unsigned lines = 0;

    printed_begin(&printed);
    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_faulty, "faulty drops_rest;", FB_TEST_SCRIPT(script)), 20);
    printed_end(&printed, text);
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    ck_assert_uint_eq(lines, 21);
    ck_assert_ptr_nonnull(strstr(text, "\nfaulty: 20 failures, the rest is left out\n"));
    ck_assert_int_eq(
        fb_test_converse(&fb_protocol_faulty, "faulty none;", FB_TEST_SCRIPT(wrong)), 0);
}
END_TEST

static const struct {
    const char *server, *stream, *main, *printed;
} configurations[] = {
    { "fawlty none;", NULL, NULL,
        "faulty: [emerg] unknown directive \"fawlty\", did you mean \"faulty\"? in the test's "
        "server directives:1:1\n" },
    { "\nfaulty nine;", NULL, NULL, " in the test's server directives:2:8\n" },
    { "faulty fails_to_start;", NULL, NULL,
        "faulty: [emerg] it does not want to in the test's server directives:1:1\n" },
    { "faulty none;", "idle_timeout x;", NULL, " in the test's stream directives:1:14\n" },
    { "faulty none;", NULL, "threads x;", " in the test's main directives:1:" },
};

START_TEST(wrong_configurations_are_shown)
{
    const fb_test_options options = {
        .size = sizeof(options),
        .server = configurations[_i].server,
        .stream = configurations[_i].stream,
        .main = configurations[_i].main,
    };
    char text[PRINTED_MAX];
    struct printed printed;

    printed_begin(&printed);
    ck_assert_ptr_null(fb_test_start_with(&fb_protocol_faulty, &options));
    printed_end(&printed, text);
    ck_assert_msg(strstr(text, configurations[_i].printed) != NULL, "%s", text);
}
END_TEST

START_TEST(a_wrong_protocol_is_shown)
{
    fb_protocol wrong = fb_protocol_faulty;
    char text[PRINTED_MAX];
    struct printed printed;

    wrong.abi = FB_ABI + 1;
    printed_begin(&printed);
    ck_assert_ptr_null(fb_test_start(&wrong, "faulty none;"));
    printed_end(&printed, text);
    ck_assert_ptr_nonnull(strstr(text, "forkbeard-test: the protocol was built for ABI 2, "));
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, mistakes_are_found, 0, sizeof(mistakes) / sizeof(mistakes[0]));
    tcase_add_loop_test(tcase, overruns_are_found, 0, 3);
    tcase_add_test(tcase, right_is_right);
    tcase_add_test(tcase, excuses_are_accepted);
    tcase_add_test(tcase, descriptors_of_others_are_watched);
    tcase_add_test(tcase, each_fault_is_counted);
    tcase_add_test(tcase, so_many_failures_are_enough);
    tcase_add_loop_test(tcase, wrong_configurations_are_shown, 0,
        sizeof(configurations) / sizeof(configurations[0]));
    tcase_add_test(tcase, a_wrong_protocol_is_shown);
}

TEST_MAIN("faults", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Mistakes of a protocol found by the checks of calls and memory: the kit names every mistake, in a
 * program of its own, because some crash. */
#include "support/test.h"

#include <forkbeard/test.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern const fb_protocol fb_protocol_mistaken;

static const struct {
    const char *name, *report;
} mistakes[] = {
#define MISTAKE(name, report) { #name, report },
#include "module/mistakes.def"
#undef MISTAKE
};

#define MISTAKES ((int)(sizeof(mistakes) / sizeof(mistakes[0])))

/* Makes a mistake; printed lines go to the descriptor. */
static void make_mistake(const char *name, int fd)
{
    fb_test *test;
    fb_test_peer *peer;
    char line[64];

    dup2(fd, STDERR_FILENO);
    test = fb_test_start(&fb_protocol_mistaken, "mistaken;");
    peer = fb_test_connect(test);
    snprintf(line, sizeof(line), "%s\n", name);
    fb_test_says(peer, line);
    fb_test_pass(test, 100);
    if (strcmp(name, "reused_slot") == 0)
        fb_test_says(fb_test_connect(test), "go\n");
    fb_test_pass(test, 100);
    _exit(0);
}

/* Reads what was printed so far. */
static void read_text(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);

    ck_assert_int_ge(n, 0);
    text[n] = '\0';
}

START_TEST(each_mistake_is_named)
{
    char text[8192], expected[256];
    int fd = memfd_create("printed", MFD_CLOEXEC), status;
    pid_t pid = fork();

    if (pid == 0)
        make_mistake(mistakes[_i].name, fd);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    read_text(fd, text, sizeof(text));
    snprintf(
        expected, sizeof(expected), "mistaken: protocol \"mistaken\" %s\n", mistakes[_i].report);
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s says\n%sand not\n%s",
        mistakes[_i].name, text, expected);
    close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, each_mistake_is_named, 0, MISTAKES);
}

TEST_MAIN("mistakes", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files by names that variables decide: nothing but a regular file beneath the directory. */
#include "keeper/named_file.h"

#include "base/compiler.h"
#include "support/directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[NAMED_PATH], reason[NAMED_REASON];

static const char *in_directory(const char *name)
{
    static char texts[8][256];
    static unsigned n;

    n = (n + 1) % countof(texts);
    snprintf(texts[n], sizeof(texts[n]), "%s/%s", directory, name);
    return texts[n];
}

static void make_file(const char *name)
{
    int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ne(fd, -1);
    close(fd);
}

START_TEST(regular_files_are_opened)
{
    const char *const names[] = { "a.crt", "./a.crt", "in/..a", in_directory("a.crt") };

    ck_assert(mkdir(in_directory("in"), 0700) == 0);
    make_file("a.crt");
    make_file("in/..a");
    for (size_t i = 0; i < countof(names); i++) {
        int fd = named_file_open(directory, names[i], path, reason);

        ck_assert_msg(fd != -1, "%s: %s", names[i], reason);
        ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
        ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
        ck_assert_int_eq(strncmp(path, directory, strlen(directory)), 0);
        close(fd);
    }
}
END_TEST

/* What a client may say as the name of a server, or a hostile worker in its place. */
START_TEST(others_are_refused)
{
    static char longest[NAMED_PATH + 1];
    const struct {
        const char *name, *reason;
    } rows[] = {
        { "", "outside of the directory" },
        { "..", "\"..\" is refused" },
        { "../etc/passwd", "\"..\" is refused" },
        { "in/../../x", "\"..\" is refused" },
        { "in//..", "\"..\" is refused" },
        { in_directory("../x"), "\"..\" is refused" },
        { "/etc/passwd", "outside of the directory" },
        { directory, "outside of the directory" },
        { in_directory(""), "outside of the directory" },
        { longest, "too long" },
        { "none", "open() failed (2: No such file or directory)" },
        { "folder", "open() failed (21: Is a directory)" },
        { "fifo", "open() failed (22: Invalid argument)" },
    };

    memset(longest, 'a', NAMED_PATH);
    ck_assert(mkdir(in_directory("folder"), 0700) == 0);
    ck_assert(mkfifo(in_directory("fifo"), 0600) == 0);
    for (size_t i = 0; i < countof(rows); i++) {
        ck_assert_int_eq(named_file_open(directory, rows[i].name, path, reason), -1);
        ck_assert_msg(strstr(reason, rows[i].reason) != NULL, "%s: %s", rows[i].name, reason);
    }
    ck_assert_int_eq(named_file_open(directory, "data:secret", path, reason), -1);
    ck_assert_str_eq(path, "data:");
    ck_assert_str_eq(
        reason, "certificates and keys in variables are not supported, only their paths");
    ck_assert_int_eq(named_file_open("/usr/lib", "/usr/library/x", path, reason), -1);
    ck_assert_ptr_nonnull(strstr(reason, "outside"));
}
END_TEST

START_TEST(a_file_without_rights_says_what_to_do)
{
    if (geteuid() == 0)
        return;
    make_file("mine");
    ck_assert_int_eq(chmod(in_directory("mine"), 0), 0);
    ck_assert_int_eq(named_file_open(directory, "mine", path, reason), -1);
    ck_assert_str_eq(reason,
        "open() failed (13: Permission denied): keeper processes open files of paths with "
        "variables as \"user\", who must be able to read them, and follow no link out of the "
        "directory");
    ck_assert_str_eq(path, in_directory("mine"));
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, regular_files_are_opened);
    tcase_add_test(tcase, others_are_refused);
    tcase_add_test(tcase, a_file_without_rights_says_what_to_do);
}

TEST_MAIN("named_file", add_tests)

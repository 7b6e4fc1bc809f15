/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of logs: links of others, FIFOs without a reader, openings of our own, and full disks. */
#include "base/logged.h"
#include "os/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER_USER 65534

static char directory[64];

static void enter_directory(void)
{
    snprintf(directory, sizeof(directory), "/tmp/log_file.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    ck_assert_int_eq(chdir(directory), 0);
    signal(SIGPIPE, SIG_IGN);
}

static void leave_directory(void)
{
    static const char *const names[] = { "log", "target", "next", "fifo" };

    ck_assert_int_eq(chdir(directory), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(names[i]);
    ck_assert_int_eq(rmdir(directory), 0);
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(name, &st) == 0;
}

static void check_opens(const char *path, const char *target)
{
    struct stat opened, named;
    int fd = log_file_open(path);

    ck_assert_msg(fd != -1, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(fstat(fd, &opened), 0);
    ck_assert_int_eq(stat(target, &named), 0);
    ck_assert_uint_eq(opened.st_ino, named.st_ino);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_APPEND, 0);
    close(fd);
}

/* Links made by root are the administrator's; their targets are made as well. */
START_TEST(own_links_are_followed)
{
    char absolute[128];

    check_opens("log", "log");
    ck_assert_int_eq(unlink("log"), 0);
    ck_assert_int_eq(symlink("next", "log"), 0);
    ck_assert_int_eq(symlink("./target", "next"), 0);
    check_opens("log", "target");
    snprintf(absolute, sizeof(absolute), "%s/log", directory);
    ck_assert_int_eq(chdir("/"), 0);
    check_opens(absolute, absolute);
    ck_assert_int_eq(chdir(directory), 0);
    ck_assert_int_eq(unlink("next"), 0);
    snprintf(absolute, sizeof(absolute), "%s/target", directory);
    ck_assert_int_eq(symlink(absolute, "next"), 0);
    check_opens("log", "target");
}
END_TEST

/* Links of the kernel are not even names. */
START_TEST(links_of_descriptors_are_followed)
{
    char path[64];
    int fd = open("target", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (LINUX_SYSTEM) /* the link's text names nothing */
        ck_assert_int_eq(unlink("target"), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(symlink(path, "log"), 0);
    check_opens(path, path);
    check_opens("log", path);
    close(fd);
}
END_TEST

START_TEST(links_of_others_are_refused)
{
    if (geteuid() != 0) /* the kernel follows them */
        return;
    ck_assert_int_eq(symlink(_i == 0 ? "target" : "next", "log"), 0);
    ck_assert_int_eq(symlink("target", "next"), 0);
    ck_assert_int_eq(lchown(_i == 0 ? "log" : "next", OTHER_USER, OTHER_USER), 0);
    ck_assert_int_eq(log_file_open("log"), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert(!is_there("target"));
    ck_assert_int_eq(close(open("target", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    ck_assert_int_eq(log_file_open("log"), -1);
}
END_TEST

/* A hard link may be anybody's, to any file. */
START_TEST(files_with_another_name_are_not_roots)
{
    ck_assert_int_eq(close(open("target", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    ck_assert_int_eq(link("target", "log"), 0);
    if (geteuid() != 0) { /* writes only to files open for writing */
        check_opens("log", "target");
        return;
    }
    ck_assert_int_eq(log_file_open("log"), -1);
    ck_assert_int_eq(errno, EMLINK);
    ck_assert_int_eq(symlink("log", "next"), 0);
    ck_assert_int_eq(log_file_open("next"), -1);
    ck_assert_int_eq(errno, EMLINK);
    ck_assert_int_eq(unlink("target"), 0);
    check_opens("next", "log");
}
END_TEST

START_TEST(a_circle_of_links_ends)
{
    ck_assert_int_eq(symlink("next", "log"), 0);
    ck_assert_int_eq(symlink("log", "next"), 0);
    ck_assert_int_eq(log_file_open("log"), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(log_file_open("missing/log"), -1);
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

/* A FIFO opens, loses lines, and goes on with every reader that comes. */
START_TEST(a_fifo_needs_no_reader)
{
    struct log_target target = { .fd = -1, .level = LEVEL_INFO, .path = "fifo" };
    struct logged logged;

    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(log_target_open(&target), 0);
    ck_assert_int_eq(target.way, LOG_WAY_WRITE);
    log_init(&logged.log, &target, 1);
    for (int i = 0; i < 2; i++) {
        ssize_t n;

        errno = EDOM;
        log_write(&logged.log, LEVEL_INFO, 0, "nobody");
        ck_assert_int_eq(errno, EDOM);
        ck_assert_uint_eq(target.lost, 1);
        ck_assert(!target.broken);
        logged.reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        log_write(&logged.log, LEVEL_INFO, 0, "somebody");
        n = read(logged.reader, logged.text, sizeof(logged.text) - 1);
        ck_assert_int_gt(n, 0);
        logged.text[n] = '\0';
        ck_assert_ptr_nonnull(strstr(logged.text, "somebody"));
        ck_assert_ptr_nonnull(strstr(logged.text, "1 line was not accepted by \"fifo\""));
        ck_assert_uint_eq(target.lost, 0);
        close(logged.reader);
    }
    close(target.fd);
}
END_TEST

/* The reader, and the writing end for the log. */
static int make_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

static int make_terminal(int ends[2])
{
    return openpty(&ends[0], &ends[1], NULL, NULL, NULL);
}

static int make_sockets(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

static int (*const make_ends[])(int ends[2]) = { make_pipe, make_terminal, make_sockets };

/* Lines until a line is lost, and no more: no write waits. */
static void check_stalls(struct log *log, struct log_target *target)
{
    for (unsigned n = 0; target->lost == 0; n++) {
        ck_assert_uint_lt(n, 100000);
        log_write(log, LEVEL_INFO, 0, "fill");
    }
}

/* Openings of our own are written without waiting, and have flags of their own. */
START_TEST(flags_of_others_stay)
{
    struct logged logged;
    int ends[2], flags, own, other;

    ck_assert_int_eq(make_ends[_i](ends), 0);
    flags = fcntl(ends[1], F_GETFL);
    own = log_file_open_again(ends[1]);
    other = log_file_open_again(ends[1]);
    if (make_ends[_i] == make_sockets)
        ck_assert_int_eq(own, -1);
    else if (LINUX_SYSTEM)
        ck_assert_int_ne(fcntl(own, F_GETFL) & O_NONBLOCK, 0);
    logged.target = (struct log_target) { .fd = own != -1 ? own : ends[1], .level = LEVEL_INFO };
    log_target_find_way(&logged.target);
    if (LINUX_SYSTEM || make_ends[_i] != make_pipe)
        ck_assert_int_eq(logged.target.way, own != -1 ? LOG_WAY_WRITE : LOG_WAY_SEND);
    log_init(&logged.log, &logged.target, 1);
    check_stalls(&logged.log, &logged.target);
    ck_assert_int_eq(fcntl(ends[1], F_GETFL), flags);
    if (own != -1) {
        ck_assert_int_eq(fcntl(own, F_SETFL, 0), 0);
        ck_assert_int_ne(fcntl(other, F_GETFL) & O_NONBLOCK, 0);
        close(own);
        close(other);
    }
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* A pipe, a terminal, or a FIFO made by another user: reopening fails. */
START_TEST(an_inherited_end_is_written_by_its_kind)
{
    struct logged logged;
    int ends[2];

    if (geteuid() != 0)
        return;
    ck_assert_int_eq(make_ends[_i](ends), 0);
    if (make_ends[_i] == make_terminal) /* a terminal belongs to its opener */
        ck_assert_int_eq(fchmod(ends[1], 0600), 0);
    ck_assert_int_eq(seteuid(OTHER_USER), 0);
    ck_assert_int_eq(log_file_open_again(ends[1]), -1);
    logged.target = (struct log_target) { .fd = ends[1], .level = LEVEL_INFO };
    log_target_find_way(&logged.target);
    log_init(&logged.log, &logged.target, 1);
    ck_assert_int_ne(logged.target.way, LOG_WAY_WRITE);
    if (logged.target.way != LOG_WAY_WAIT) /* older kernels */
        check_stalls(&logged.log, &logged.target);
    ck_assert(make_ends[_i] == make_pipe || logged.target.way != LOG_WAY_NOWAIT);
    ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(seteuid(0), 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* A file with a shared open file description keeps flags and position. */
START_TEST(files_are_opened_again_for_appending)
{
    int fd = open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), own;

    ck_assert_int_eq(log_file_open_again(fd), -1);
    close(fd);
    fd = open("log", O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_eq(unlink("log"), 0); /* a rotation does so */
    own = log_file_open_again(fd);
    ck_assert_int_eq(fcntl(own, F_SETFL, 0), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_APPEND, 0);
    ck_assert_int_eq(write(own, "x", 1), 1);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 1);
    close(own);
    close(fd);
    ck_assert_int_eq(log_file_open_again(fd), -1);
}
END_TEST

static void limit_files(rlim_t size)
{
    struct rlimit limit = { size, RLIM_INFINITY };

    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A line with room only for a part is lost as well, and the next line begins anew. */
START_TEST(lines_without_room_are_counted)
{
    struct logged logged;
    const char *text;

    signal(SIGXFSZ, SIG_IGN);
    logged_begin(&logged, LEVEL_INFO);
    limit_files(60);
    log_write(&logged.log, LEVEL_INFO, 0, "whole");
    log_write(&logged.log, LEVEL_INFO, 0, "torn");
    log_write(&logged.log, LEVEL_INFO, 0, "missing");
    ck_assert_uint_eq(logged.target.lost, 2);
    ck_assert(!logged.target.broken && !logged.log.broken);
    limit_files(RLIM_INFINITY);
    log_write(&logged.log, LEVEL_INFO, 0, "again");
    text = logged_text(&logged);
    ck_assert_ptr_nonnull(strstr(text, "whole\n2"));
    ck_assert_ptr_null(strstr(text, "torn"));
    ck_assert_ptr_null(strstr(text, "missing"));
    ck_assert_int_eq(text[60], '\n');
    ck_assert_int_eq(text[61], '2');
    ck_assert_ptr_nonnull(strstr(text, "123#0: again\n"));
    ck_assert_ptr_nonnull(strstr(text, "123#0: 2 lines were not accepted by standard error\n"));
    logged_end(&logged);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, enter_directory, leave_directory);
    tcase_add_test(tcase, own_links_are_followed);
    tcase_add_test(tcase, links_of_descriptors_are_followed);
    tcase_add_loop_test(tcase, links_of_others_are_refused, 0, 2);
    tcase_add_test(tcase, files_with_another_name_are_not_roots);
    tcase_add_test(tcase, a_circle_of_links_ends);
    tcase_add_test(tcase, a_fifo_needs_no_reader);
    tcase_add_loop_test(tcase, flags_of_others_stay, 0, 3);
    tcase_add_loop_test(tcase, an_inherited_end_is_written_by_its_kind, 0, 3);
    if (LINUX_SYSTEM)
        tcase_add_test(tcase, files_are_opened_again_for_appending);
    tcase_add_test(tcase, lines_without_room_are_counted);
}

TEST_MAIN("log_file", add_tests)

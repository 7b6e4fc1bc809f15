/* SPDX-License-Identifier: BSD-2-Clause */
/* Possible master processes are found by name, in one or two directories. */
#include "cli/masters.h"

#include "os/files.h"
#include "support/directory.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char pid_path[128], control_path[128];

static void make_pid_file(const char *suffix, const char *text)
{
    char path[160];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", pid_path, suffix);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_socket(const char *suffix)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.80s%s", control_path, suffix);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

/* Locks the pid file's lock, as a master process does. */
static int make_lock(void)
{
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s.lock", pid_path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(os_lock_try(fd), OS_LOCK_DONE);
    return fd;
}

static void remove_name(const char *path, const char *suffix)
{
    char name[160];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    ck_assert_int_eq(unlink(name), 0);
}

static struct core_settings use_names(const char *pid, const char *control)
{
    struct core_settings core = { .pid = pid_path, .control.path = control_path };

    snprintf(pid_path, sizeof(pid_path), "%s/%s", directory, pid);
    snprintf(control_path, sizeof(control_path), "%s/%s", directory, control);
    return core;
}

static void check_entry(
    const struct masters_entry *entry, enum masters_place place, pid_t pid, const char *suffix)
{
    char path[160];

    ck_assert_int_eq(entry->place, place);
    ck_assert_int_eq(entry->pid, pid);
    ck_assert_int_eq(entry->control == NULL, suffix == NULL);
    if (suffix == NULL)
        return;
    snprintf(path, sizeof(path), "%s%s", control_path, suffix);
    ck_assert_str_eq(entry->control, path);
}

START_TEST(there_is_none)
{
    struct core_settings core = use_names("none.pid", "none.sock");
    struct masters masters;

    ck_assert_int_eq(masters_find(&masters, &core, NULL), 0);
    ck_assert_uint_eq(masters.n, 0);
    masters_free(&masters);
    core.control.path = NULL;
    core.pid = "/nowhere/at/all.pid";
    ck_assert_int_eq(masters_find(&masters, &core, NULL), 0);
    ck_assert_uint_eq(masters.n, 0);
    masters_free(&masters);
}
END_TEST

/* Waits for a tick of the file system's clock, so that the next name is later than all before. */
static void wait_for_tick(void)
{
    time_t deadline = time(NULL) + TEST_PATIENCE_MS / 1000;
    struct stat first, now;
    char path[160];
    int fd;

    snprintf(path, sizeof(path), "%s/clock", directory);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(fstat(fd, &first), 0);
    do {
        ck_assert_int_eq(fchmod(fd, 0600), 0);
        ck_assert_int_eq(fstat(fd, &now), 0);
        ck_assert_int_le(time(NULL), deadline);
    } while (
        now.st_ctim.tv_sec == first.st_ctim.tv_sec && now.st_ctim.tv_nsec == first.st_ctim.tv_nsec);
    close(fd);
    ck_assert_int_eq(unlink(path), 0);
}

/* In their order, the latest quit first; similar names are left out. */
START_TEST(they_have_an_order)
{
    struct core_settings core = use_names("a.pid", "a.sock");
    struct masters masters;
    int lock = make_lock();

    make_pid_file(".quit.30", "30\n");
    make_socket(".quit.30");
    wait_for_tick();
    make_socket(".quit.20");
    wait_for_tick();
    make_pid_file(".quit.40", "40\n");
    make_socket(".oldbin");
    make_pid_file(".oldbin", "10\n");
    make_pid_file("", "50\n");
    make_socket("");
    make_pid_file(".quit.", "1\n");
    make_pid_file(".quit.x", "1\n");
    make_pid_file(".quit.-1", "1\n");
    make_pid_file(".quit.7.new", "7\n");
    make_pid_file("x.quit.8", "8\n");

    ck_assert_int_eq(masters_find(&masters, &core, NULL), 0);
    ck_assert_uint_eq(masters.n, 5);
    check_entry(&masters.list[0], MASTERS_FIRST, 50, "");
    check_entry(&masters.list[1], MASTERS_OLD, 10, ".oldbin");
    check_entry(&masters.list[2], MASTERS_QUITTING, 40, NULL);
    check_entry(&masters.list[3], MASTERS_QUITTING, 20, ".quit.20");
    check_entry(&masters.list[4], MASTERS_QUITTING, 30, ".quit.30");
    masters_free(&masters);

    close(lock); /* they were killed */
    remove_name(control_path, ".oldbin");
    ck_assert_int_eq(masters_find(&masters, &core, NULL), 0);
    ck_assert_uint_eq(masters.n, 4);
    check_entry(&masters.list[0], MASTERS_FIRST, -1, "");
    check_entry(&masters.list[1], MASTERS_QUITTING, 40, NULL);
    masters_free(&masters);
}
END_TEST

START_TEST(in_two_directories)
{
    struct core_settings core = use_names("b.pid", "sub/b.sock");
    char sub[128];
    struct masters masters;

    snprintf(sub, sizeof(sub), "%s/sub", directory);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    make_pid_file("", "not a number\n");
    make_pid_file(".quit.3", "3\n");
    make_socket(".quit.3");
    make_socket(".quit.4");
    ck_assert_int_eq(masters_find(&masters, &core, NULL), 0);
    ck_assert_uint_eq(masters.n, 3);
    check_entry(&masters.list[0], MASTERS_FIRST, -1, NULL);
    for (unsigned i = 1; i < 3; i++)
        ck_assert_ptr_nonnull(masters.list[i].control);
    masters_free(&masters);
    remove_name(control_path, ".quit.3");
    remove_name(control_path, ".quit.4");
    ck_assert_int_eq(rmdir(sub), 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, there_is_none);
    tcase_add_test(tcase, they_have_an_order);
    tcase_add_test(tcase, in_two_directories);
}

TEST_MAIN("masters", add_tests)

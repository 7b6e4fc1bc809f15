/* SPDX-License-Identifier: BSD-2-Clause */
/* The pid file: locked, always whole, and removed only by the process named in it. */
#include "pidfile/pidfile.h"

#include "support/directory.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHER_USER 12345

/* A log into memory that children write to as well, and a path. */
struct pidfile_test {
    struct memory_log log;
    struct pidfile pidfile;
    char path[64];
};

static void start_pidfile(struct pidfile_test *test, const char *name)
{
    memory_log_open(&test->log, LEVEL_INFO);
    snprintf(test->path, sizeof(test->path), "%s/%s", directory, name);
}

static void stop_pidfile(struct pidfile_test *test)
{
    memory_log_close(&test->log);
}

static void store_file(const char *path, const char *text, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, text, n), (ssize_t)n);
    close(fd);
}

/* Counts the files of the directory with the prefix. */
static unsigned count_files(const char *prefix)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    unsigned n = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        n += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(dir);
    return n;
}

/* Waits for a child and checks the exit status. */
static void reap_child(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with %#x", status);
}

START_TEST(written_and_removed)
{
    struct pidfile_test test;
    struct stat st;
    char expected[32], text[32] = "";
    int fd;
    mode_t mask = umask(077);

    start_pidfile(&test, "plain");
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    ck_assert_int_eq(fcntl(test.pidfile.lock_fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_uint_eq(count_files("plain"), 1);
    ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), 0);
    umask(mask);
    ck_assert_uint_eq(count_files("plain"), 2);

    ck_assert_int_eq(stat(test.path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0644);
    fd = open(test.path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(read(fd, text, sizeof(text) - 1), 0);
    close(fd);
    snprintf(expected, sizeof(expected), "%d\n", (int)getpid());
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), getpid());

    pidfile_release(&test.pidfile, &test.log.log);
    ck_assert_uint_eq(count_files("plain"), 0);
    ck_assert_int_eq(test.pidfile.lock_fd, -1);
    pidfile_release(&test.pidfile, &test.log.log);
    stop_pidfile(&test);
}
END_TEST

/* A child that holds the lock until the pipe is closed, and then ends as `remove` says. */
static pid_t spawn_holder(struct pidfile_test *test, bool remove, int *hold)
{
    int ready[2], end[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(end, O_CLOEXEC), 0);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        close(end[1]);
        if (pidfile_lock(&test->pidfile, test->path, &test->log.log) == -1 ||
            pidfile_write_pid(&test->pidfile, &test->log.log) == -1 || write(ready[1], "", 1) != 1)
            _exit(1);
        if (read(end[0], &byte, 1) != 0)
            _exit(2);
        if (remove)
            pidfile_release(&test->pidfile, &test->log.log);
        _exit(0);
    }
    close(ready[1]);
    close(end[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *hold = end[1];
    return pid;
}

START_TEST(a_second_master_is_kept_out)
{
    struct pidfile_test test;
    bool removes = _i == 1;
    char expected[256];
    int hold;
    pid_t holder;

    start_pidfile(&test, "second");
    holder = spawn_holder(&test, removes, &hold);
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), -1);
    ck_assert_int_eq(test.pidfile.lock_fd, -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] another master process %d runs with the pid file \"%s\": "
        "stop it, or set a different \"pid\"\n",
        (int)holder, test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), holder);
    ck_assert_uint_eq(count_files("second"), 2);

    close(hold);
    reap_child(holder);
    ck_assert_uint_eq(count_files("second"), removes ? 0 : 2);

    /* the files of a killed process are in no process's way */
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), 0);
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), getpid());
    pidfile_release(&test.pidfile, &test.log.log);
    ck_assert_uint_eq(count_files("second"), 0);
    stop_pidfile(&test);
}
END_TEST

START_TEST(a_child_that_forgets_leaves_the_lock)
{
    struct pidfile_test test;
    struct pidfile other;
    char expected[256];
    pid_t pid;

    start_pidfile(&test, "forget");
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        pidfile_close_lock(&test.pidfile);
        _exit(test.pidfile.lock_fd == -1 ? 0 : 1);
    }
    reap_child(pid);

    pid = fork();
    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        _exit(pidfile_lock(&other, test.path, &test.log.log) == -1 ? 0 : 1);
    reap_child(pid);
    snprintf(expected, sizeof(expected),
        "t: [emerg] another master process %d runs with the pid file \"%s\": "
        "stop it, or set a different \"pid\"\n",
        (int)getpid(), test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    pidfile_release(&test.pidfile, &test.log.log);
    stop_pidfile(&test);
}
END_TEST

#define CONTENDERS 4
#define TURNS 300 /* turns of each process */

struct contest {
    atomic_uint holders;
    atomic_bool broken;
};

/* Whether the lock is held on the file that a newcomer would open. */
static bool is_named(const struct pidfile_test *test)
{
    char name[sizeof(test->path) + 8];
    struct stat named, locked;

    snprintf(name, sizeof(name), "%s.lock", test->path);
    return stat(name, &named) == 0 && fstat(test->pidfile.lock_fd, &locked) == 0 &&
           named.st_ino == locked.st_ino;
}

static void contend_for_lock(struct pidfile_test *test, struct contest *contest)
{
    test->log.target.fd = -1; /* no log: the loser's line is not looked at here */
    for (unsigned turns = 0; turns < TURNS && !contest->broken;) {
        if (pidfile_lock(&test->pidfile, test->path, &test->log.log) == -1)
            continue;
        if (atomic_fetch_add(&contest->holders, 1) != 0 || !is_named(test))
            contest->broken = true;
        atomic_fetch_sub(&contest->holders, 1);
        pidfile_release(&test->pidfile, &test->log.log);
        turns++;
    }
    _exit(0);
}

START_TEST(removing_lets_nobody_lock_a_file_without_a_name)
{
    struct pidfile_test test;
    struct contest *contest =
        mmap(NULL, sizeof(*contest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[CONTENDERS];

    ck_assert_ptr_ne(contest, MAP_FAILED);
    start_pidfile(&test, "contest");
    for (unsigned i = 0; i < CONTENDERS; i++) {
        pids[i] = fork();
        ck_assert_int_ne(pids[i], -1);
        if (pids[i] == 0)
            contend_for_lock(&test, contest);
    }
    for (unsigned i = 0; i < CONTENDERS; i++)
        reap_child(pids[i]);
    ck_assert_msg(!contest->broken, "two held the lock at once");
    munmap(contest, sizeof(*contest));
    stop_pidfile(&test);
}
END_TEST

#define READS 5000

struct reader {
    const char *path;
    pid_t pid;
    atomic_uint reads;
    atomic_bool wrong;
};

static void *read_over_and_over(void *data)
{
    struct reader *reader = data;
    char expected[32], text[32];

    snprintf(expected, sizeof(expected), "%d\n", (int)reader->pid);
    while (reader->reads < READS) {
        int fd = open(reader->path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd != -1 ? read(fd, text, sizeof(text) - 1) : -1;

        if (n < 0 || (size_t)n != strlen(expected) || memcmp(text, expected, (size_t)n) != 0)
            reader->wrong = true;
        if (fd != -1)
            close(fd);
        reader->reads++;
    }
    return NULL;
}

START_TEST(nobody_reads_half_a_file)
{
    struct pidfile_test test;
    struct reader reader = { .pid = getpid() };
    unsigned writes = 1;
    pthread_t thread;

    start_pidfile(&test, "whole");
    reader.path = test.path;
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_over_and_over, &reader), 0);
    for (; reader.reads < READS || writes < 100; writes++)
        ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), 0);
    pthread_join(thread, NULL);
    ck_assert(!reader.wrong);
    pidfile_release(&test.pidfile, &test.log.log);
    stop_pidfile(&test);
}
END_TEST

START_TEST(another_ones_pid_file_is_not_removed)
{
    struct pidfile other; /* the child has the lock as well */
    struct pidfile_test test;

    start_pidfile(&test, "others");
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    store_file(test.path, "1\n", 2);
    pidfile_release(&test.pidfile, &test.log.log);
    ck_assert_uint_eq(count_files("others"), 1);
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), 1);

    /* nor is a lock file that is not ours alone, or no longer */
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    test.pidfile.shared = true;
    other = test.pidfile;
    other.lock_fd = dup(test.pidfile.lock_fd);
    pidfile_release(&other, &test.log.log);
    ck_assert_uint_eq(count_files("others.lock"), 1);
    strcat(test.path, ".lock");
    ck_assert_int_eq(unlink(test.path), 0);
    store_file(test.path, "", 0);
    test.path[strlen(test.path) - 5] = '\0';
    pidfile_release(&test.pidfile, &test.log.log);
    ck_assert_uint_eq(count_files("others.lock"), 1);
    stop_pidfile(&test);
}
END_TEST

static const struct {
    const char *text;
    pid_t pid;
    const char *shown;
} read_cases[] = {
    { "123\n", 123, NULL },
    { "123", 123, NULL },
    { "123\r\n", 123, NULL },
    { "2147483647\n", INT_MAX, NULL },
    { "", -1, "" },
    { "\n", -1, "" },
    { "0\n", -1, "0" },
    { "-1\n", -1, "-1" },
    { "2147483648\n", -1, "2147483648" },
    { "99999999999999999999999\n", -1, "99999999999999999999999" },
    { "12x\n", -1, "12x" },
    { " 12\n", -1, " 12" },
    { "12\n34\n", -1, "12\\x0a34" },
};

START_TEST(read_pid)
{
    struct pidfile_test test;
    char expected[256] = "";

    start_pidfile(&test, "read");
    store_file(test.path, read_cases[_i].text, strlen(read_cases[_i].text));
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), read_cases[_i].pid);
    if (read_cases[_i].shown != NULL)
        snprintf(expected, sizeof(expected), "t: [error] invalid PID number \"%s\" in \"%s\"\n",
            read_cases[_i].shown, test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    stop_pidfile(&test);
}
END_TEST

START_TEST(read_failures)
{
    struct pidfile_test test;
    char expected[256];

    start_pidfile(&test, "missing");
    ck_assert_int_eq(pidfile_read_pid(test.path, &test.log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [error] open() \"%s\" failed (2: No such file or directory)\n", test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);

    ck_assert_int_eq(pidfile_read_pid(directory, &test.log.log), -1);
    snprintf(expected, sizeof(expected), "t: [error] read() \"%s\" failed (21: Is a directory)\n",
        directory);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    stop_pidfile(&test);
}
END_TEST

START_TEST(lock_failures)
{
    struct pidfile_test test;
    char expected[256], path[PATH_MAX + 1];

    start_pidfile(&test, "none/x");
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] open() \"%s.lock\" failed (2: No such file or directory)\n", test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] mkostemp() \"%s.XXXXXX\" failed (2: No such file or directory)\n", test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);

    snprintf(test.path, sizeof(test.path), "%s/link", directory);
    snprintf(path, sizeof(path), "%s.lock", test.path);
    ck_assert_int_eq(symlink("elsewhere", path), 0);
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] open() \"%s.lock\" failed (40: Too many levels of symbolic links)\n",
        test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);

    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(pidfile_lock(&test.pidfile, path, &test.log.log), -1);
    /* the line is too long for the end within */
    ck_assert_ptr_eq(
        strstr(memory_log_take(&test.log), "t: [emerg] the pid file \"xxx"), test.log.text);
    stop_pidfile(&test);
}
END_TEST

/* A writer to the directory may replace the lock by a foreign file, or hold the lock. */
START_TEST(locks_of_others_are_refused)
{
    struct pidfile_test test;
    char lock[128], victim[128];
    struct stat st;

    start_pidfile(&test, "pid");
    snprintf(lock, sizeof(lock), "%s.lock", test.path);
    snprintf(victim, sizeof(victim), "%s/victim", directory);
    store_file(victim, "precious", 8);
    ck_assert_int_eq(link(victim, lock), 0);
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), -1);
    ck_assert_ptr_nonnull(strstr(memory_log_take(&test.log),
        "pid.lock\" has another name (a hard link), whose file would be written to: remove it\n"));
    ck_assert_int_eq(stat(victim, &st), 0);
    ck_assert_int_eq(st.st_size, 8);

    ck_assert_int_eq(unlink(victim), 0);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(lock, OTHER_USER, OTHER_USER), 0);
        ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), -1);
        ck_assert_ptr_nonnull(strstr(memory_log_take(&test.log),
            "pid.lock\" belongs to another user (12345), who could hold it: remove it\n"));
        ck_assert_int_eq(chown(lock, 0, 0), 0);
    }
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    pidfile_unlock(&test.pidfile, &test.log.log);
    ck_assert_uint_eq(count_files("pid"), 0);
    stop_pidfile(&test);
}
END_TEST

START_TEST(only_a_file_is_replaced)
{
    struct pidfile_test test;
    struct stat st;
    char expected[256];

    start_pidfile(&test, "fifo");
    ck_assert_int_eq(mkfifo(test.path, 0600), 0);
    ck_assert_int_eq(pidfile_lock(&test.pidfile, test.path, &test.log.log), 0);
    ck_assert_int_eq(pidfile_write_pid(&test.pidfile, &test.log.log), -1);
    snprintf(expected, sizeof(expected),
        "t: [emerg] the pid file \"%s\" exists and is not a regular file\n", test.path);
    ck_assert_str_eq(memory_log_take(&test.log), expected);
    pidfile_release(&test.pidfile, &test.log.log);
    ck_assert_int_eq(lstat(test.path, &st), 0);
    ck_assert(S_ISFIFO(st.st_mode));
    ck_assert_uint_eq(count_files("fifo"), 1);
    stop_pidfile(&test);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, written_and_removed);
    tcase_add_loop_test(tcase, a_second_master_is_kept_out, 0, 2);
    tcase_add_test(tcase, a_child_that_forgets_leaves_the_lock);
    tcase_add_test(tcase, removing_lets_nobody_lock_a_file_without_a_name);
    tcase_add_test(tcase, nobody_reads_half_a_file);
    tcase_add_test(tcase, another_ones_pid_file_is_not_removed);
    tcase_add_loop_test(tcase, read_pid, 0, countof(read_cases));
    tcase_add_test(tcase, read_failures);
    tcase_add_test(tcase, lock_failures);
    tcase_add_test(tcase, locks_of_others_are_refused);
    tcase_add_test(tcase, only_a_file_is_replaced);
}

TEST_MAIN("pidfile", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A process enters the sandbox of a configuration, and tries. */
#include "sandbox/attempts.h"
#include "sandbox/confine.h"
#include "sandbox/sandbox.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_ENTER 200

static struct cycle cycle;
static struct log_target target;
static struct log log_;
static char directory[32], file[64], said[2048];

static void set_up(void)
{
    FILE *made;

    strcpy(directory, "/tmp/sandbox_mode.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(file, sizeof(file), "%s/file", directory);
    made = fopen(file, "we");
    ck_assert_ptr_nonnull(made);
    fclose(made);
    log_init_plain(&log_, &target, "t");
    target.fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ne(target.fd, -1);
    memset(&cycle, 0, sizeof(cycle));
    STAILQ_INIT(&cycle.needs.paths);
    cycle.core.sandbox = SANDBOX_STRICT;
    cycle.core.rlimit_core = -1;
    cycle.arena = arena_create();
    ck_assert_ptr_nonnull(cycle.arena);
}

static void tear_down(void)
{
    arena_destroy(&cycle.arena);
    close(target.fd);
    unlink(file);
    ck_assert_int_eq(rmdir(directory), 0);
}

/* Returns what was logged so far. */
static const char *logged(void)
{
    ssize_t n = pread(target.fd, said, sizeof(said) - 1, 0);

    said[n > 0 ? n : 0] = '\0';
    return said;
}

/* In a child ending by _exit(): no check of leaks. */
static int in_sandbox(int (*act)(const void *arg), const void *arg)
{
    pid_t pid = fork();
    int status;

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        _exit(sandbox_prepare(&cycle, &log_) == -1 || sandbox_enter(&cycle, &log_) == -1
                  ? CANNOT_ENTER
                  : act(arg));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int try_attempt(const void *words)
{
    return attempt(words);
}

static void check_attempt(const char *words, int expected)
{
    int outcome = in_sandbox(try_attempt, words);

    ck_assert_msg(outcome == expected, "\"%s\": %d (%s), not %d: %s", words, outcome,
        strerror(outcome), expected, logged());
}

static const char *with_file(const char *attempt_at)
{
    static char words[128];

    snprintf(words, sizeof(words), "%s %s", attempt_at, file);
    return words;
}

START_TEST(off_changes_nothing)
{
    cycle.core.sandbox = SANDBOX_OFF;
    check_attempt("execve", ENOENT);
    check_attempt("udp", 0);
    check_attempt(with_file("open"), 0);
    ck_assert_str_eq(logged(), "");
}
END_TEST

/* A filter that could not be made does not count as unneeded. */
START_TEST(nothing_is_entered_without_a_filter)
{
    pid_t pid = fork();
    int status;

    ck_assert_int_ne(pid, -1);
    if (pid == 0)
        _exit(sandbox_enter(&cycle, &log_) == -1 ? CANNOT_ENTER : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), CANNOT_ENTER);
    ck_assert_ptr_nonnull(strstr(logged(), "the filter of system calls could not be set"));
}
END_TEST

/* A need opens the needed resources, and nothing beyond. */
static const struct {
    uint64_t need;
    const char *opens[5];
} needs[] = {
    { FB_NEEDS_EXEC, { "program", "code", "fork" } },
    { FB_NEEDS_CODE, { "code", "mprotect" } },
    { FB_NEEDS_NAMES, { "look_up", "netlink", "udp", "open /etc/passwd", "bind" } },
    { FB_NEEDS_UDP, { "udp" } },
    { FB_NEEDS_LISTEN, { "listen", "bind" } },
};

static const char *const closed[] = { "raw", "packet", "mount", "bpf", "ptrace", "setuid",
    "clone_user", "io_uring", "netlink_diag", "keyctl", "finit_module" };

START_TEST(needs_are_met_one_by_one)
{
    bool execs = needs[_i].need == FB_NEEDS_EXEC;

    cycle.needs.rights = needs[_i].need;
    for (size_t i = 0; i < countof(needs[_i].opens) && needs[_i].opens[i] != NULL; i++)
        check_attempt(needs[_i].opens[i], 0);
    for (size_t i = 0; i < countof(closed); i++)
        check_attempt(closed[i], EPERM);
    if (!execs || syscall(444, NULL, 0, 1) >= 6) /* from this version on Landlock bounds signals */
        check_attempt("kill 1", EPERM);
    if (!execs)
        check_attempt("execve", EPERM);
    check_attempt(with_file("open"), EACCES);
}
END_TEST

/* An earlier ring is used, with no rights beyond the earlier rights. */
START_TEST(a_ring_is_used_and_none_is_made)
{
    cycle.core.sandbox = SANDBOX_ON;
    check_attempt("io_uring_enter", EPERM);
    cycle.needs.rights = NEEDS_RING;
    check_attempt("io_uring_enter", EBADF); /* no ring was made here */
    check_attempt("io_uring_register", EPERM);
    check_attempt("io_uring", EPERM);
}
END_TEST

static int read_and_write(const void *arg)
{
    const char *own = arg;
    char other[80];
    int fd = open(own, O_RDWR | O_CLOEXEC);

    snprintf(other, sizeof(other), "%s2", own);
    if (fd == -1 || ftruncate(fd, 0) == -1 || rename(own, other) == -1 || rename(other, own) == -1)
        return errno;
    return 0;
}

static const char *made_beside(const char *own)
{
    static char made[80];

    snprintf(made, sizeof(made), "%s3", own);
    return made;
}

static int append(const void *arg)
{
    int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC;
    int fd = open(arg, flags, 0600), made = open(made_beside(arg), flags, 0600);

    return fd == -1 || made == -1 || write(made, "x", 1) != 1 ? errno : 0;
}

START_TEST(paths)
{
    struct needs_path path = { .path = directory };

    STAILQ_INSERT_TAIL(&cycle.needs.paths, &path, link);
    check_attempt(with_file("open"), 0);
    ck_assert_int_eq(in_sandbox(read_and_write, file), EACCES);
    path.access = NEEDS_TO_WRITE;
    ck_assert_int_eq(in_sandbox(read_and_write, file), 0);
    path.access = NEEDS_TO_APPEND; /* of access logs */
    ck_assert_int_eq(in_sandbox(append, file), 0);
    ck_assert_int_eq(unlink(made_beside(file)), 0);
    ck_assert_int_eq(in_sandbox(read_and_write, file), EACCES);
    check_attempt(with_file("open"), EACCES);
    path.access = NEEDS_TO_WRITE;
    path.path = file;
    check_attempt(with_file("open"), 0);
    ck_assert_int_eq(in_sandbox(read_and_write, file), EACCES); /* the directory is not open */
    path.path = "/nowhere";
    check_attempt(with_file("open"), EACCES);
    ck_assert_ptr_nonnull(strstr(logged(), "sandbox: this worker cannot open \"/nowhere\""));
}
END_TEST

static void *wait_here(void *arg)
{
    pause();
    return arg;
}

static int enter_with_thread(const void *mode)
{
    pthread_t thread;

    cycle.core.sandbox = *(const int64_t *)mode;
    if (sandbox_prepare(&cycle, &log_) == -1)
        return CANNOT_ENTER;
    if (pthread_create(&thread, NULL, wait_here, NULL) != 0)
        return errno;
    return sandbox_enter(&cycle, &log_) == -1 ? CANNOT_ENTER : 0;
}

START_TEST(threads)
{
    int64_t mode = _i;

    bool strict = mode == SANDBOX_STRICT;

    cycle.core.sandbox = SANDBOX_OFF;
    ck_assert_int_eq(in_sandbox(enter_with_thread, &mode), strict ? CANNOT_ENTER : 0);
    ck_assert_ptr_nonnull(strstr(logged(), strict ? "[emerg] " : "[warn] "));
    ck_assert_ptr_nonnull(strstr(logged(), "sandbox: 2 threads exist already"));
}
END_TEST

static void note_unknown(const char *protocol, const char *line)
{
    cycle.needs.unknown = protocol;
    ck_assert_int_eq(sandbox_prepare(&cycle, &log_), 0);
    ck_assert_ptr_nonnull(strstr(logged(), line));
}

START_TEST(what_is_open_is_noted)
{
    struct needs_path path = { .path = "/some/where", .access = NEEDS_TO_WRITE };

    cycle.needs.rights = FB_NEEDS_EXEC | FB_NEEDS_UDP;
    STAILQ_INSERT_TAIL(&cycle.needs.paths, &path, link);
    note_unknown("older", "protocol \"older\" cannot declare needs, and the sandbox denies all");
    ck_assert_ptr_nonnull(strstr(logged(), "workers may run programs, because"));
    ck_assert_ptr_nonnull(strstr(logged(), "workers may open datagram sockets, because"));
    ck_assert_ptr_nonnull(strstr(logged(), "workers may write \"/some/where\", because"));
    ck_assert_ptr_null(strstr(logged(), "listening"));
    cycle.core.sandbox = SANDBOX_ON;
    note_unknown("older", "so the sandbox leaves paths, programs and sockets open");
}
END_TEST

static void add_tests(TCase *tcase)
{
    int error;

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    if (sandbox_seccomp_lacks(&error) == NULL && sandbox_landlock_lacks(&error) == NULL) {
        tcase_add_loop_test(tcase, needs_are_met_one_by_one, 0, countof(needs));
        tcase_add_test(tcase, a_ring_is_used_and_none_is_made);
        tcase_add_test(tcase, paths);
        tcase_add_loop_test(tcase, threads, SANDBOX_ON, SANDBOX_STRICT + 1);
        tcase_add_test(tcase, what_is_open_is_noted);
        tcase_add_test(tcase, nothing_is_entered_without_a_filter);
    }
    tcase_add_test(tcase, off_changes_nothing);
}

TEST_MAIN("sandbox", add_tests)

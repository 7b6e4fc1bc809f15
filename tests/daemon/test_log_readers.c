/* SPDX-License-Identifier: BSD-2-Clause */
/* Readers of the error log that stall, have gone, or have not come yet: clients and commands do not
 * wait, and lost lines are counted. */
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SERVER "events {} stream { server { listen 127.0.0.1:$0; echo; } }\n"
#define ENDED "client disconnected, bytes from/to client:"
#define LOST "not accepted by "
#define OTHER_USER 65534

static const char *const kinds[] = { "worker_processes 2; ", "master_process off; " };
#define KIND_N 2

/* A configuration whose only log is this. */
static void configure(struct daemon *daemon, const char *kind, const char *log)
{
    daemon_write(daemon, "forkbeard.conf",
        "error_log %s info; error_log_rate_limit off; pid forkbeard.pid; %s" SERVER, log, kind);
}

/* Standard error: the reader's end, and the daemon's end. */

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
#define ENDS_N 3

/* Fills the pipe: a waiting write would block from now on. A terminal moves its content and makes
 * room for more, a moment later. */
static void fill(int fd)
{
    static const char text[] = "filled\n";
    int flags = fcntl(fd, F_GETFL);

    ck_assert_int_eq(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    for (int refused = 0; refused < 5; pause_briefly())
        for (refused++; write(fd, text, sizeof(text) - 1) > 0;)
            refused = 0;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags), 0);
}

/* The text that was read. */
static char lines[1 << 20];

/* Adds all that is there to the first n bytes of the lines, and returns how many there are. */
static size_t drain(int reader, size_t n)
{
    ssize_t more;

    while (n < sizeof(lines) - 1 && (more = read(reader, lines + n, sizeof(lines) - 1 - n)) > 0)
        n += (size_t)more;
    lines[n] = '\0';
    return n;
}

/* Reads on, with something to be logged by workers and the master, until the text comes. */
static void drain_until(struct daemon *daemon, int reader, const char *text)
{
    size_t n = drain(reader, 0);

    for (int64_t until = deadline_ms(); strstr(lines, text) == NULL; pause_briefly()) {
        ck_assert_msg(now_ms() < until, "waited in vain for \"%s\"", text);
        client_run_session(daemon->ports[0]);
        daemon_signal(daemon, SIGUSR1);
        n = drain(reader, n);
    }
}

static void use_daemon(struct daemon *daemon, bool has_master)
{
    for (int i = 0; i < 20; i++)
        client_run_session(daemon->ports[0]);
    if (!has_master) {
        daemon_signal(daemon, SIGUSR1);
        return;
    }
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    ck_assert(control_is_ok(control_ask(daemon, "reopen")));
    ck_assert(control_is_ok(control_ask(daemon, "status")));
    client_run_session(daemon->ports[0]);
}

START_TEST(a_reader_that_stalls)
{
    const char *kind = kinds[_i % KIND_N];
    struct daemon *daemon = daemon_create(1);
    int ends[2], flags;

    ck_assert_int_eq(make_ends[_i / KIND_N](ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    fill(ends[1]);
    flags = fcntl(ends[1], F_GETFL);
    daemon->standard_error = ends[1];
    configure(daemon, kind, "stderr");
    daemon_start(daemon);
    use_daemon(daemon, kind == kinds[0]);
    ck_assert_int_eq(fcntl(ends[1], F_GETFL), flags);
    drain_until(daemon, ends[0], LOST "standard error");
    drain_until(daemon, ends[0], ENDED);
    fill(ends[1]); /* ... which stalls again, to the end */
    use_daemon(daemon, kind == kinds[0]);
    daemon_stop(daemon, SIGQUIT);
    close(ends[0]);
    close(ends[1]);
    daemon_finish(daemon);
}
END_TEST

/* The second log shows that the lines of standard error are lost for good. */
START_TEST(a_reader_that_goes)
{
    const char *kind = kinds[_i % KIND_N];
    struct daemon *daemon = daemon_create(1);
    int ends[2];

    ck_assert_int_eq(make_ends[_i / KIND_N](ends), 0);
    daemon->standard_error = ends[1];
    daemon_configure(daemon, "error_log stderr info; %s" SERVER, kind);
    daemon_start(daemon);
    close(ends[0]);
    use_daemon(daemon, kind == kinds[0]);
    daemon_stop(daemon, SIGTERM);
    close(ends[1]);
    daemon_finish(daemon);
}
END_TEST

static int open_fifo(const struct daemon *daemon)
{
    int reader = open(daemon_path(daemon, "fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);

    ck_assert_int_ne(reader, -1);
    return reader;
}

START_TEST(a_fifo_without_a_reader)
{
    const char *kind = kinds[_i];
    struct daemon *daemon = daemon_create(1);
    int reader;

    ck_assert_int_eq(mkfifo(daemon_path(daemon, "fifo"), 0600), 0);
    daemon_owns(daemon, "fifo");
    configure(daemon, kind, "fifo");
    daemon_expects(daemon, LOST); /* on standard error, while the start ends */
    daemon_start(daemon);
    for (int i = 0; i < 2; i++) {
        use_daemon(daemon, kind == kinds[0]);
        reader = open_fifo(daemon);
        drain_until(daemon, reader, LOST "\"");
        drain_until(daemon, reader, ENDED);
        close(reader);
    }
    reader = open_fifo(daemon);
    use_daemon(daemon, kind == kinds[0]);
    drain_until(daemon, reader, ENDED);
    use_daemon(daemon, kind == kinds[0]);
    daemon_stop(daemon, SIGQUIT);
    drain(reader, 0);
    ck_assert_ptr_nonnull(strstr(lines, "exit"));
    close(reader);
    daemon_finish(daemon);
}
END_TEST

/* Processes report lost lines once a log has room. */
START_TEST(a_full_disk)
{
    const char *kind = kinds[_i];
    struct daemon *daemon = daemon_create(1);

    daemon_owns(daemon, "disk.log");
    ck_assert_int_eq(symlink("/dev/full", daemon_path(daemon, "disk.log")), 0);
    configure(daemon, kind, "disk.log");
    daemon->log = "disk.log";
    daemon_expects(daemon, LOST);
    daemon_start(daemon);
    use_daemon(daemon, kind == kinds[0]);
    ck_assert_int_eq(unlink(daemon_path(daemon, "disk.log")), 0);
    use_daemon(daemon, kind == kinds[0]);
    WAIT_FOR(daemon_has(daemon, "disk.log"));
    client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, "disk.log\"");
    daemon_stop(daemon, SIGQUIT);
    ck_assert_uint_gt(daemon_count_log(daemon, LOST "\"/"), 0);
    daemon_finish(daemon);
}
END_TEST

static void limit_files(pid_t pid, rlim_t size)
{
    struct rlimit limit = { size, RLIM_INFINITY };

    ck_assert_int_eq(prlimit(pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

/* A file at RLIMIT_FSIZE: the kernel would kill the process by SIGXFSZ. */
START_TEST(a_file_at_its_limit)
{
    struct daemon *daemon = daemon_create(1);

    configure(daemon, "master_process off; ", "error.log");
    daemon_expects(daemon, LOST);
    daemon_start(daemon);
    client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, ENDED);
    limit_files(daemon->pid, strlen(daemon_text(daemon, "error.log")) + 10);
    for (int i = 0; i < 20; i++)
        client_run_session(daemon->ports[0]);
    limit_files(daemon->pid, RLIM_INFINITY);
    client_run_session(daemon->ports[0]);
    daemon_wait_log(daemon, " lines were " LOST "\"/");
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void give_up_root(void)
{
    if (setgid(OTHER_USER) == -1 || setuid(OTHER_USER) == -1)
        _exit(124);
}

/* A terminal that may not be reopened: a start reports the consequence. */
START_TEST(a_terminal_of_another_user)
{
    struct daemon *daemon;
    int ends[2];

    if (geteuid() != 0)
        return;
    daemon = daemon_create(1);
    ck_assert_int_eq(make_terminal(ends), 0);
    ck_assert_int_eq(fchmod(ends[1], 0600), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(chown(daemon->directory, OTHER_USER, OTHER_USER), 0);
    daemon->standard_error = ends[1];
    daemon->before_exec = give_up_root;
    configure(daemon, "", "stderr");
    daemon_start(daemon);
    drain_until(daemon, ends[0], "[warn] standard error cannot be opened again");
    daemon_stop(daemon, SIGQUIT);
    close(ends[0]);
    close(ends[1]);
    daemon_finish(daemon);
}
END_TEST

/* Descriptor of a file in a process; -1: none. */
static int find_descriptor(pid_t pid, const char *path)
{
    char name[32];

    for (int fd = 3; fd < 64; fd++) {
        snprintf(name, sizeof(name), "fd/%d", fd);
        if (strcmp(proc_link(pid, name), path) == 0)
            return fd;
    }
    return -1;
}

/* Clears the flags of a worker's descriptor, as a worker could; false where that is not allowed. */
static bool clear_flags(pid_t pid, int fd)
{
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int copy = process == -1 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    bool cleared = copy != -1 && fcntl(copy, F_SETFL, 0) == 0;

    if (copy != -1)
        close(copy);
    if (process != -1)
        close(process);
    return cleared;
}

static void check_appends(pid_t pid, int fd)
{
    char name[32];
    const char *flags;

    snprintf(name, sizeof(name), "fdinfo/%d", fd);
    flags = strstr(proc_text(pid, name), "flags:");
    ck_assert_ptr_nonnull(flags);
    ck_assert_uint_ne(strtoul(flags + strlen("flags:"), NULL, 8) & O_APPEND, 0);
}

/* Descriptors of workers have flags of their own, also descriptors passed at a reopening. */
START_TEST(a_worker_clears_its_own_flags)
{
    struct daemon *daemon = daemon_start_new(1, "worker_processes 2; " SERVER);
    char path[256];
    pid_t workers[3];

    snprintf(path, sizeof(path), "%s", daemon_path(daemon, "error.log"));
    for (int i = 0; i < 2; i++) {
        int fd = find_descriptor(daemon->pid, path), own;

        ck_assert_uint_eq(proc_children(daemon->pid, workers, 3), 2);
        own = find_descriptor(workers[0], path);
        ck_assert(fd != -1 && own != -1);
        if (!clear_flags(workers[0], own))
            break;
        check_appends(daemon->pid, fd);
        check_appends(workers[1], find_descriptor(workers[1], path));
        ck_assert_int_eq(rename(path, daemon_path(daemon, "error.log.1")), 0);
        daemon_owns(daemon, "error.log.1");
        ck_assert(control_is_ok(control_ask(daemon, "reopen")));
        WAIT_FOR(
            find_descriptor(workers[0], path) != -1 && find_descriptor(workers[1], path) != -1);
    }
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

/* The owner of the log's directory makes no file of root's the log. */
START_TEST(a_link_of_another_user)
{
    struct daemon *daemon;
    struct json_value answer;

    if (geteuid() != 0)
        return;
    daemon = daemon_start_new(1, SERVER);
    daemon_expects(daemon, "root follows no symbolic link of another user");
    daemon_owns(daemon, "old.log");
    ck_assert_int_eq(unlink(daemon_path(daemon, "error.log")), 0);
    ck_assert_int_eq(symlink("victim", daemon_path(daemon, "error.log")), 0);
    ck_assert_int_eq(lchown(daemon_path(daemon, "error.log"), OTHER_USER, OTHER_USER), 0);
    answer = control_ask(daemon, "reopen");
    ck_assert(!control_is_ok(answer));
    ck_assert_ptr_nonnull(strstr(control_text(answer, "error"),
        "error.log\" failed, root follows no symbolic link of another user, the old file stays in "
        "use"));
    ck_assert(!daemon_has(daemon, "victim"));
    ck_assert(!control_is_ok(control_ask(daemon, "reload")));
    ck_assert(!daemon_has(daemon, "victim"));
    ck_assert_int_eq(unlink(daemon_path(daemon, "error.log")), 0);
    ck_assert_int_eq(symlink("old.log", daemon_path(daemon, "error.log")), 0); /* root's */
    ck_assert(control_is_ok(control_ask(daemon, "reload")));
    daemon_stop(daemon, SIGQUIT);
    ck_assert(daemon_has(daemon, "old.log"));
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    tcase_add_loop_test(tcase, a_reader_that_stalls, 0, ENDS_N * KIND_N);
    tcase_add_loop_test(tcase, a_reader_that_goes, 0, ENDS_N * KIND_N);
    tcase_add_loop_test(tcase, a_fifo_without_a_reader, 0, KIND_N);
    tcase_add_loop_test(tcase, a_full_disk, 0, KIND_N);
    tcase_add_test(tcase, a_file_at_its_limit);
    tcase_add_test(tcase, a_terminal_of_another_user);
    tcase_add_test(tcase, a_worker_clears_its_own_flags);
    tcase_add_test(tcase, a_link_of_another_user);
}

TEST_MAIN("log_readers", add_tests)

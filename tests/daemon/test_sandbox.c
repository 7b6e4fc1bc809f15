/* SPDX-License-Identifier: BSD-2-Clause */
/* The sandbox from within: a captured module tries its attempts, in a real worker. */
#include "daemon/client.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/sandbox_rows.h"
#include "sandbox/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROBER(name)                                                                               \
    "load_module " MODULES_PATH "/" name ".so;\n"                                                  \
    "events {}\n"

enum mode { OFF, ON, STRICT };
static const char *const modes[] = { "off", "on", "strict" };

/* The leak sanitizer cannot stop threads that are outside of the sandbox. */
#ifdef __SANITIZE_ADDRESS__
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Whether the kernel and the build have the sandbox layer. */
static bool is_guarded(enum guard guard)
{
    int error;

    if (guard == FILTER)
        return sandbox_seccomp_lacks(&error) == NULL;
    return syscall(444, NULL, 0, 1) >= (guard == PORTS ? 4 : 1);
}

static bool is_whole(void)
{
    return is_guarded(FILTER) && is_guarded(PATHS);
}

static bool has_capability(unsigned capability)
{
    const char *found = strstr(proc_text(getpid(), "status"), "CapEff:");

    ck_assert_ptr_nonnull(found);
    return (strtoull(found + strlen("CapEff:"), NULL, 16) >> (capability - 1) & 1) != 0;
}

/* The errno's name in the answer; valid until the next call. */
static const char *try_attempt(struct daemon *daemon, const char *words)
{
    static char line[64];
    int client = client_open(daemon->ports[0]);
    size_t n = 0;

    client_send(client, words);
    client_send(client, "\n");
    while (n < sizeof(line) - 1 && recv(client, line + n, 1, 0) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    close(client);
    ck_assert_msg(n > 0 && strcmp(line, "unknown") != 0, "\"%s\" is answered \"%s\"", words, line);
    return line;
}

static const char *try_port(struct daemon *daemon, int port)
{
    char words[32];

    snprintf(words, sizeof(words), "connect %u", daemon->ports[port]);
    return try_attempt(daemon, words);
}

static const char *name_of(int error)
{
    return error == 0 ? "0" : strerrorname_np(error);
}

static void check_row(struct daemon *daemon, const struct row *row, enum mode mode, bool root)
{
    const char *port = strstr(row->words, "$1"), *answer;
    int expected = mode == ON ? row->on : row->strict;
    char words[128];

    snprintf(words, sizeof(words), "%s", row->words);
    if (port != NULL)
        sprintf(words + (port - row->words), "%u", daemon->ports[1]);
    answer = try_attempt(daemon, words);
    if (mode != OFF && is_guarded(row->guard))
        ck_assert_msg(strcmp(answer, name_of(expected)) == 0, "%s: \"%s\" is answered %s, not %s",
            modes[mode], words, answer, name_of(expected));
    if (mode == OFF && row->strict != 0 && row->strict != EBADF && /* EBADF: allowed */
        (row->capability == 0 || (root && has_capability(row->capability))))
        ck_assert_msg(strcmp(answer, name_of(row->strict)) != 0,
            "\"%s\" is denied (%s) by something else", words, answer);
}

/* Three modes, as root and as nobody. */
START_TEST(attempts)
{
    bool root = _i % 2 == 0;
    enum mode mode = (enum mode)(_i / 2);
    struct daemon *daemon = daemon_create(2);

    daemon_configure(daemon,
        "sandbox %s; user %s;\n" PROBER("prober") "stream { server { listen $0; prober; } }\n",
        modes[mode], root ? "root" : "nobody");
    daemon_start(daemon);
    for (size_t i = 0; i < ROWS; i++)
        check_row(daemon, &rows[i], mode, root);
    daemon_finish(daemon);
}
END_TEST

/* Only paths given by the administrator to a protocol are open to the protocol. */
START_TEST(paths_of_directives)
{
    struct daemon *daemon = daemon_create(1);

    daemon_write(daemon, "secret", "1");
    daemon_write(daemon, "open", "1");
    ck_assert_int_eq(mkdir(daemon_path(daemon, "place"), 0755), 0);
    daemon_configure(daemon,
        "sandbox %s; user root;\n" PROBER(
            "prober") "stream { server { listen $0; prober; prober_reads $D/open; "
                      "prober_writes $D/place; } }\n",
        modes[_i]);
    daemon_start(daemon);
    daemon_wait_log(daemon, "sandbox: workers may read \"/");
    daemon_wait_log(daemon, "/open\", because");
    daemon_wait_log(daemon, "sandbox: workers may write \"/");
    ck_assert_str_eq(try_attempt(daemon, "open open"), "0");
    ck_assert_str_eq(try_attempt(daemon, "open secret"), "EACCES");
    ck_assert_str_eq(try_attempt(daemon, "make place/new"), "0");
    ck_assert_str_eq(try_attempt(daemon, "open place"), "0");
    ck_assert_str_eq(try_attempt(daemon, "make new"), "EACCES");
    ck_assert_str_eq(try_attempt(daemon, "make place/../new"), "EACCES");
    daemon_stop(daemon, SIGTERM);
    ck_assert_int_eq(rmdir(daemon_path(daemon, "place")), 0);
    daemon_finish(daemon);
}
END_TEST

/* A path that does not exist is worth a line, and closes nothing. */
START_TEST(a_path_that_is_not_there)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(
        daemon, "sandbox on;\n" PROBER(
                    "prober") "stream { server { listen $0; prober; prober_reads $D/none; } }\n");
    daemon_start(daemon);
    if (is_guarded(PATHS))
        daemon_wait_log(daemon, "/none\" (2: No such file");
    ck_assert_str_eq(try_attempt(daemon, "kill_self"), "0");
    daemon_finish(daemon);
}
END_TEST

static void check_all(struct daemon *daemon, const char *const (*answers)[2])
{
    for (; (*answers)[0] != NULL; answers++) {
        const char *answer = try_attempt(daemon, (*answers)[0]);

        ck_assert_msg(strcmp(answer, (*answers)[1]) == 0, "\"%s\" is answered %s, not %s",
            (*answers)[0], answer, (*answers)[1]);
    }
}

/* A protocol's needs are granted, and nothing else. */
START_TEST(needs)
{
    static const char *const answers[][2] = { { "program", "0" }, { "code", "0" },
        { "mprotect", "0" }, { "look_up", "0" }, { "open /etc/passwd", "0" }, { "netlink", "0" },
        { "netlink_diag", "EPERM" }, { "udp", "0" }, { "listen", "0" }, { "bind", "0" },
        { "tcp", "0" }, { "unix", "0" }, { "connect 1", "ECONNREFUSED" }, { "raw", "EPERM" },
        { "hidden_raw", "EPERM" }, { "packet", "EPERM" }, { "mount", "EPERM" },
        { "ptrace", "EPERM" }, { "make /tmp/fb_made_by_a_worker", "EACCES" }, { "bpf", "EPERM" },
        { "clone_user", "EPERM" }, { "io_uring", "EPERM" }, { "stop_appending", "0" },
        { "mptcp", "EPERM" }, { "fastopen", "EPERM" }, { "zero_code", "0" },
        { WORDS(SOL_SOCKET, SO_RCVTIMEO), "EBADF" }, { WORDS(SOL_TCP, TCP_USER_TIMEOUT), "EBADF" },
        { WORDS(SOL_IP, IP_TOS), "EBADF" }, { WORDS(SOL_IP, IP_PKTINFO), "EBADF" },
        { WORDS(SOL_SOCKET, SO_LINGER), "EPERM" }, { WORDS(SOL_TCP, TCP_MD5SIG), "EPERM" },
        { NULL, NULL } };
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "sandbox %s; user root;\n" PROBER(
            "prober_needs") "stream { server { listen $0; prober; } }\n",
        modes[_i]);
    daemon_start(daemon);
    daemon_wait_log(daemon, "[notice] ");
    daemon_wait_log(
        daemon, "sandbox: workers may run programs, because protocols need the right\n");
    daemon_wait_log(daemon, "open listening sockets, because");
    check_all(daemon, answers);
    ck_assert_str_eq(try_attempt(daemon, "begin_to_wait"), _i == STRICT ? "EPERM" : "0");
    daemon_finish(daemon);
}
END_TEST

/* Under `strict` a worker connects only to the ports named in the configuration. */
START_TEST(targets)
{
    struct daemon *daemon = daemon_create(3);

    daemon_configure(daemon,
        "sandbox strict;\n" PROBER("prober") "stream { server { listen $0; prober; "
                                             "prober_target 127.0.0.1:$0; } }\n");
    daemon_start(daemon);
    ck_assert_str_eq(try_port(daemon, 0), "0");
    ck_assert_str_eq(try_port(daemon, 1), is_guarded(PORTS) ? "EACCES" : "ECONNREFUSED");
    ck_assert_str_eq(try_attempt(daemon, "unix"), "EPERM");
    daemon_configure(daemon,
        "sandbox strict;\n" PROBER("prober") "stream { server { listen $0; prober; "
                                             "prober_target unix:/nonexistent; } }\n");
    ck_assert_int_eq(daemon_run(daemon, "-s", "reload", "-c", "forkbeard.conf", NULL), 0);
    daemon_wait_log(daemon, "gracefully shutting down"); /* the old worker accepts no more */
    ck_assert_str_eq(try_attempt(daemon, "unix"), "0");
    ck_assert_str_eq(try_port(daemon, 0), "EPERM");
    daemon_finish(daemon);
}
END_TEST

/* A module built before the sandbox existed goes on as before, unless the sandbox is strict. */
START_TEST(an_old_module)
{
    static const char *const on[][2] = { { "program", "0" }, { "open /etc/passwd", "0" },
        { "make /tmp/fb_made_by_a_worker", "0" }, { "udp", "0" }, { "listen", "0" },
        { "look_up", "0" }, { "raw", "EPERM" }, { "mount", "EPERM" }, { "keyctl", "EPERM" },
        { "ptrace", "EPERM" }, { "stop_appending", "0" }, { "have_others_wait", "0" },
        { WORDS(SOL_SOCKET, SO_RCVTIMEO), "EBADF" }, { WORDS(SOL_SOCKET, SO_LINGER), "EPERM" },
        { NULL, NULL } };
    static const char *const strict[][2] = { { "program", "EPERM" },
        { "open /etc/passwd", "EACCES" }, { "listen", "EPERM" }, { NULL, NULL } };
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "sandbox %s; user root;\n" PROBER(
            "prober_old") "stream { server { listen $0; prober; } }\n",
        modes[_i]);
    daemon_start(daemon);
    daemon_wait_log(daemon, "protocol \"prober\" cannot declare needs, ");
    daemon_wait_log(daemon, _i == ON ? "so the sandbox leaves" : "and the sandbox denies");
    check_all(daemon, _i == ON ? on : strict);
    daemon_finish(daemon);
}
END_TEST

/* A job of worker_start runs in the sandbox, which no thread has been before. */
START_TEST(a_job_before_it)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "sandbox %s; error_log error.log notice;\n" PROBER(
            "prober") "stream { server { listen $0; prober; } }\n",
        modes[_i]);
    daemon_start(daemon);
    daemon_wait_log(daemon, "the first job: EACCES");
    daemon_finish(daemon);
}
END_TEST

/* Landlock does not hold threads already running. */
START_TEST(threads_before_it)
{
    static const char said[] = "sandbox: 3 threads exist already, started by a protocol's";
    struct daemon *daemon = daemon_create(1);
    bool strict = _i == STRICT;

    daemon_configure(daemon,
        "sandbox %s;\n" PROBER(
            "prober") "stream { server { listen $0; prober; prober_threads 2; } }\n",
        modes[_i]);
    if (strict) {
        daemon_expects(daemon, "");
        ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-g", "daemon off;", NULL), 1);
        proc_reap_orphans();
        daemon_wait_log(daemon, "[emerg] ");
        daemon_wait_log(daemon, said);
    } else {
        daemon_expects(daemon, said);
        daemon_start(daemon);
        daemon_wait_log(daemon, "[warn] ");
        daemon_wait_log(daemon, said);
        ck_assert_str_eq(try_attempt(daemon, "execve"), "EPERM");
    }
    daemon_finish(daemon);
}
END_TEST

/* Runs the daemon on a kernel that lacks a part, by a filter of the test. */
#define REFUSE(number, what, error)                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                         \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),                                         \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),                \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what, 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),                                      \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void refuse_connection(struct sock_filter *steps, unsigned short n)
{
    struct sock_fprog program = { .len = n, .filter = steps };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1)
        _exit(123);
}

static void lack_landlock(void)
{
    struct sock_filter steps[] = { REFUSE(444, 0, EOPNOTSUPP) };

    refuse_connection(steps, sizeof(steps) / sizeof(steps[0]));
}

static void lack_filter(void)
{
    struct sock_filter steps[] = { REFUSE(SYS_prctl, PR_SET_SECCOMP, EINVAL) };

    refuse_connection(steps, sizeof(steps) / sizeof(steps[0]));
}

static const struct {
    void (*before_exec)(void);
    const char *part, *why;
    const char *words, *answer; /* calls that the sandbox does not stop */
} lacks[] = {
    { lack_landlock, "the rules for paths: ", "Landlock is not enabled", "open /etc/passwd", "0" },
    { lack_filter, "the filter of system calls: ", "", "execve", "ENOENT" },
};

/* `on` says what is missing and goes on; a change to `strict` fails, and nothing has changed. */
START_TEST(on_goes_on_without_a_part)
{
    struct daemon *daemon = daemon_create(1);
    const char *text = PROBER("prober") "stream { server { listen $0; prober; } }\n";

    daemon->before_exec = lacks[_i].before_exec;
    daemon_configure(daemon, "sandbox on;\n%s", text);
    daemon_start(daemon);
    daemon_wait_log(daemon, "[notice] ");
    daemon_wait_log(daemon, "sandbox: workers run without ");
    daemon_wait_log(daemon, lacks[_i].part);
    ck_assert_str_eq(try_attempt(daemon, lacks[_i].words), lacks[_i].answer);

    daemon_configure(daemon, "sandbox strict;\n%s", text);
    daemon_expects(daemon, "\"sandbox strict\" is not possible without ");
    daemon->before_exec = NULL;
    ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", "-s", "reload", NULL), 1);
    ck_assert_msg(strstr(daemon->err, lacks[_i].part) != NULL, "%s", daemon->err);
    ck_assert_str_eq(try_attempt(daemon, lacks[_i].words), lacks[_i].answer);
    daemon_finish(daemon);
}
END_TEST

START_TEST(strict_refuses_to_go_on_without_a_part)
{
    struct daemon *daemon = daemon_create(1);

    daemon->before_exec = lacks[_i].before_exec;
    daemon_configure(
        daemon, "sandbox strict;\n" PROBER("prober") "stream { server { listen $0; prober; } }\n");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(daemon_run(daemon, "-c", "forkbeard.conf", i == 0 ? "-t" : NULL, NULL), 1);
        ck_assert_msg(
            strstr(daemon->err, "[emerg] \"sandbox strict\" is not possible without ") != NULL &&
                strstr(daemon->err, lacks[_i].part) != NULL &&
                strstr(daemon->err, lacks[_i].why) != NULL,
            "%s", daemon->err);
    }
    daemon_finish(daemon);
}
END_TEST

/* A single process keeps a master's rights. */
START_TEST(a_single_process)
{
    struct daemon *daemon = daemon_create(1);

    daemon_configure(daemon,
        "sandbox %s; master_process off;\n" PROBER(
            "prober") "stream { server { listen $0; prober; } }\n",
        modes[_i]);
    if (_i == STRICT) {
        ck_assert_int_eq(daemon_run(daemon, "-t", "-c", "forkbeard.conf", NULL), 1);
        ck_assert_msg(
            strstr(daemon->err, "\"sandbox strict\" needs worker processes: set ") != NULL, "%s",
            daemon->err);
    } else {
        daemon_start(daemon);
        ck_assert_str_eq(try_attempt(daemon, "program"), "0");
    }
    daemon_finish(daemon);
}
END_TEST

/* With busy_poll a worker asks the kernel for processes waiting for its processor, and a signal
 * still comes. */
START_TEST(a_worker_that_polls)
{
    static const char *const mechanisms[] = { "epoll", "poll", "select" };
    struct daemon *daemon = daemon_start_new(1,
        "sandbox %s; events { use %s; busy_poll 500us; } stream { server { listen $0; echo; } }\n",
        modes[is_whole() ? STRICT : ON], mechanisms[_i]);
    int client = client_open(daemon->ports[0]);

    for (int i = 0; i < 100; i++)
        client_echo(client, "hello");
    close(client);
    daemon_stop(daemon, SIGQUIT);
    daemon_finish(daemon);
}
END_TEST

static void add_tests(TCase *tcase)
{
    resources_fixture(tcase);
    if (is_wrapped()) /* the sanitizer makes calls of its own */
        return;
    if (geteuid() == 0)
        tcase_add_loop_test(tcase, attempts, 0, 2 * (is_whole() ? STRICT + 1 : ON + 1));
    if (geteuid() == 0 && is_whole()) {
        tcase_add_loop_test(tcase, paths_of_directives, ON, STRICT + 1);
        tcase_add_loop_test(tcase, needs, ON, STRICT + 1);
        tcase_add_test(tcase, targets);
        tcase_add_loop_test(tcase, an_old_module, ON, STRICT + 1);
    }
    tcase_add_test(tcase, a_path_that_is_not_there);
    tcase_add_loop_test(tcase, a_worker_that_polls, 0, 3);
    if (is_whole()) {
        tcase_add_loop_test(tcase, a_job_before_it, ON, STRICT + 1);
        tcase_add_loop_test(tcase, threads_before_it, IS_SANITIZED ? STRICT : ON, STRICT + 1);
    }
    tcase_add_loop_test(tcase, on_goes_on_without_a_part, 0, 2);
    tcase_add_loop_test(tcase, strict_refuses_to_go_on_without_a_part, 0, 2);
    tcase_add_loop_test(tcase, a_single_process, ON, STRICT + 1);
}

TEST_MAIN("sandbox", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The throw-away process for the first reading of a configuration: the parent's log has all
 * findings, and nothing else remains. */
#include "configuration/config_check.h"
#include "features/features.h"
#include "process/process_ops.h"
#include "support/wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The action of the protocol's code. In the child: its value at the fork. */
static int (*act)(fb_conf *conf);

static int done(fb_conf *conf, void *own, const void *parent)
{
    (void)own;
    (void)parent;
    return act(conf);
}

static const fb_directive directives[] = {
    { .name = "acting", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
};
static const fb_ops ops = { .size = sizeof(fb_ops) };
static const fb_protocol acting = {
    FB_PROTOCOL_HEADER,
    .name = "acting",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .conf_done = done,
};
static const fb_protocol *const protocols[] = { &acting, NULL };

static struct test {
    char directory[32], conf[64];
    struct cycle_options options;
    struct log_target target;
    struct log log;
    char said[4096]; /* by the last check; ends of lines are "\n" */
} test;

static void set_up(void)
{
    strcpy(test.directory, "/tmp/fb_config_check.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test.directory));
    snprintf(test.conf, sizeof(test.conf), "%s/main", test.directory);
    test.options = (struct cycle_options) {
        .conf = test.conf,
        .pid = "/default/pid",
        .error_log = "/default/error.log",
        .module_directory = "/nowhere",
        .protocols = protocols,
        .features = features_all,
    };
    log_init_plain(&test.log, &test.target, "");
    test.target.fd = memfd_create("said", MFD_CLOEXEC);
    ck_assert_int_ne(test.target.fd, -1);
}

static void tear_down(void)
{
    close(test.target.fd);
    unlink(test.conf);
    ck_assert_int_eq(rmdir(test.directory), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static void write_conf(const char *text)
{
    FILE *file = fopen(test.conf, "we");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

#define SERVED "events { } stream { server { listen 1; acting; } }"

static int check_text(const char *text)
{
    struct config_check check = { .pid = 0 };
    ssize_t n;
    int status;

    write_conf(text);
    ck_assert_int_eq(ftruncate(test.target.fd, 0), 0);
    ck_assert_int_eq(lseek(test.target.fd, 0, SEEK_SET), 0);
    status = config_check_run(&check, &test.options, &test.log, -1);
    config_check_done(&check);
    n = pread(test.target.fd, test.said, sizeof(test.said) - 1, 0);
    ck_assert_int_ge(n, 0);
    test.said[n] = '\0';
    return status;
}

/* Fails unless exactly one line was logged, containing the text. */
static void expect_line(const char *text)
{
    const char *end = strchr(test.said, '\n');

    ck_assert_msg(end != NULL && end[1] == '\0' && strstr(test.said, text) != NULL, "it says:\n%s",
        test.said);
}

static int do_nothing(fb_conf *conf)
{
    (void)conf;
    return 0;
}

START_TEST(what_is_well_is_silent)
{
    act = do_nothing;
    ck_assert_int_eq(check_text(SERVED), 0);
    ck_assert_str_eq(test.said, "");
    ck_assert_int_eq(check_text("events { } # and nothing more"), 0);
    ck_assert_str_eq(test.said, "");
}
END_TEST

/* `user` is a warning where nobody is root. */
START_TEST(warnings_are_left_to_the_real_thing)
{
    struct config_check check = { .pid = 0 };
    struct cycle *cycle;

    act = do_nothing;
    write_conf("user root; " SERVED);
    ck_assert_int_eq(chmod(test.directory, 0755), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(config_check_run(&check, &test.options, &test.log, -1), 0);
    config_check_done(&check);
    ck_assert_int_eq(lseek(test.target.fd, 0, SEEK_END), 0);
    cycle = cycle_load(&test.options, &test.log, -1);
    ck_assert_ptr_nonnull(cycle);
    cycle_destroy(&cycle);
    ck_assert_int_gt(lseek(test.target.fd, 0, SEEK_END), 0);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(mistakes_are_shown_once)
{
    act = do_nothing;
    ck_assert_int_eq(check_text("events { } demon on;"), -1);
    expect_line("unknown directive \"demon\", did you mean \"daemon\"? in ");
}
END_TEST

static int raise_segv(fb_conf *conf)
{
    (void)conf;
    return raise(SIGSEGV);
}

static int raise_abrt(fb_conf *conf)
{
    (void)conf;
    return raise(SIGABRT);
}

static int raise_term(fb_conf *conf)
{
    (void)conf;
    return raise(SIGTERM);
}

static int exit_well(fb_conf *conf)
{
    (void)conf;
    _exit(0);
}

static int exit_badly(fb_conf *conf)
{
    (void)conf;
    _exit(7);
}

/* The line is the parent's, and names the culprit. */
static const struct {
    int (*act)(fb_conf *conf);
    const char *line;
} faults[] = {
    { raise_segv, "crashed when its configuration was done: signal 11 (Segmentation fault) in " },
    { raise_abrt, "crashed when its configuration was done: signal 6 (Aborted) in " },
    { raise_term, "was ended when its configuration was done: signal 15 (Terminated) in " },
    { exit_well, "exited when its configuration was done: code 0 in " },
    { exit_badly, "exited when its configuration was done: code 7 in " },
};

START_TEST(a_fault_is_told)
{
    act = faults[_i].act;
    ck_assert_int_eq(check_text(SERVED), -1);
    expect_line("[emerg] protocol \"acting\" ");
    expect_line(faults[_i].line);
    expect_line("/main:1:21\n");
}
END_TEST

/* The child's report on the begun callback; NULL in tests without need of it. */
static volatile pid_t *begun;

static void share_begun(void)
{
    begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)begun, MAP_FAILED);
}

static void forget_begun(void)
{
    munmap((void *)begun, sizeof(*begun));
    begun = NULL;
}

static int say_and_hang(fb_conf *conf)
{
    *begun = getpid();
    while (conf != NULL)
        pause();
    return 0;
}

/* The clock that the wait goes by hurries from when the callback hangs: before, the time limit
 * would be the check's own. */
int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    static time_t ahead;
    int status = __real_clock_gettime(id, now);

    if (begun != NULL && *begun != 0)
        now->tv_sec += ahead += 20;
    return status;
}

START_TEST(what_hangs_is_ended)
{
    act = say_and_hang;
    share_begun();
    ck_assert_int_eq(check_text(SERVED), -1);
    forget_begun();
    expect_line(
        "protocol \"acting\" did not finish when its configuration was done: the time limit is "
        "60 seconds in ");
}
END_TEST

/* Descriptors to be closed, and descriptors to be kept: the standard ones, the log and the pipe
 * that tells the parent of the child's end. */
static int count_descriptors(fb_conf *conf)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = -3; /* itself, "." and ".." */

    while (dir != NULL && readdir(dir) != NULL)
        n++;
    closedir(dir);
    return fb_conf_errorf(conf, NULL, "%d descriptors", n);
}

START_TEST(the_child_holds_what_it_needs)
{
    struct log_target more[2] = { { .fd = open("/dev/null", O_WRONLY | O_CLOEXEC) }, { .fd = -1 } };
    struct log other;
    int others[20];

    for (size_t i = 0; i < countof(others); i++)
        others[i] = open("/dev/null", O_RDONLY);
    act = count_descriptors;
    ck_assert_int_eq(check_text(SERVED), -1);
    expect_line("4 descriptors in ");
    log_init(&other, more, 2);
    test.log.also = &other;
    ck_assert_int_eq(check_text(SERVED), -1);
    expect_line("5 descriptors in ");
    test.log.also = NULL;
    for (size_t i = 0; i < countof(others); i++) {
        ck_assert_int_ne(fcntl(others[i], F_GETFD), -1);
        close(others[i]);
    }
    close(more[0].fd);
}
END_TEST

/* How many signals are blocked or have a handler. */
static int count_signals(fb_conf *conf)
{
    struct sigaction action;
    sigset_t blocked;
    int n = 0;

    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < NSIG; i++)
        n += sigismember(&blocked, i) == 1 ||
             (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
                 action.sa_handler != SIG_IGN);
    return fb_conf_errorf(conf, NULL, "%d signals", n);
}

/* In a master: pending signals are kept, and the end of the check's child is not taken for a
 * worker's. */
START_TEST(a_master_s_signals_are_not_disturbed)
{
    sigset_t blocked;
    siginfo_t info = { .si_pid = 0 };
    bool reload = false, reap = false;
    pid_t worker;

    signals_install(ROLE_MASTER);
    worker = fork();
    ck_assert_int_ne(worker, -1);
    if (worker == 0)
        _exit(3);
    ck_assert_int_eq(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT), 0);
    kill(getpid(), SIGHUP);

    act = count_signals;
    ck_assert_int_eq(check_text(SERVED), -1);
    expect_line("0 signals in ");
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    ck_assert_int_eq(sigismember(&blocked, SIGHUP), 1);
    ck_assert(!signals_take(COMMAND_RELOAD, NULL));
    while (!reload || !reap) { /* a signal at a time */
        sigsuspend(&signals_state->wait_mask);
        reload = reload || signals_take(COMMAND_RELOAD, NULL);
        reap = reap || signals_take(COMMAND_REAP, NULL);
    }
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), 0);
    ck_assert_int_eq(info.si_pid, worker);
    ck_assert_int_eq(info.si_status, 3);
    process_ops->reset_handlers();
}
END_TEST

START_TEST(it_ends_with_its_parent)
{
    int pipe_ends[2];
    char byte;
    pid_t parent;

    share_begun();
    ck_assert_int_eq(pipe(pipe_ends), 0);
    parent = fork();
    ck_assert_int_ne(parent, -1);
    if (parent == 0) { /* the child keeps the write end as stdin */
        dup2(pipe_ends[1], STDIN_FILENO);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        act = say_and_hang;
        check_text(SERVED);
        _exit(0);
    }
    close(pipe_ends[1]);
    WAIT_FOR(*begun != 0);
    ck_assert_int_eq(kill(*begun, 0), 0);
    ck_assert_int_eq(kill(parent, SIGKILL), 0);
    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    ck_assert_int_eq(read(pipe_ends[0], &byte, 1), 0); /* no process holds the opposite end */
    close(pipe_ends[0]);
    forget_begun();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_is_well_is_silent);
    tcase_add_test(tcase, warnings_are_left_to_the_real_thing);
    tcase_add_test(tcase, mistakes_are_shown_once);
    tcase_add_loop_test(tcase, a_fault_is_told, 0, countof(faults));
    tcase_add_test(tcase, what_hangs_is_ended);
    tcase_add_test(tcase, the_child_holds_what_it_needs);
    tcase_add_test(tcase, a_master_s_signals_are_not_disturbed);
    tcase_add_test(tcase, it_ends_with_its_parent);
}

TEST_MAIN("config_check", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A failed start of a generation: at the daemon's start the process ends, and a reload leaves the
 * generation before unchanged, with nothing of the new generation left. */
#include "plays/case.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#define OTHER "server { listen unix:$D/other; listen $A:7001; echo; }"

/* A socket of another process at port 7001 of the play's address. */
static int bind_address(const struct play *play)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1, a, b, c;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(7001) };

    ck_assert_int_eq(sscanf(play->address, "127.%d.%d.%d", &a, &b, &c), 3);
    address.sin_addr.s_addr = htonl((in_addr_t)(127u << 24 | (unsigned)(a << 16 | b << 8 | c)));
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void fail_first_fork(struct play *play, struct play_process *process)
{
    (void)play;
    (void)process;
}

/* Forking the worker after this one fails. */
static void fail_next_fork(struct play *play, struct play_process *process)
{
    (void)process;
    play->failures.fork = 1;
    play->forked = NULL;
}

static void fail_next_wakeup(struct play *play, struct play_process *process)
{
    (void)process;
    play->failures.wakeup_add = 1;
    play->forked = NULL;
}

static void fail_start(struct play *play, struct play_process *process)
{
    process->worker->fails_start = true;
    play->forked = NULL;
}

/* Failures of workers' start: what is said, and whether the first fork fails. */
static const struct {
    void (*forked)(struct play *play, struct play_process *process);
    unsigned fork;
    const char *says;
} troubles[] = {
    { fail_first_fork, 1, "a worker process could not be forked" },
    { fail_next_fork, 0, "a worker process could not be forked" },
    { fail_next_wakeup, 0, "a worker process could not be forked" },
    { fail_start, 0, "a worker process could not start" },
};

#define TROUBLES (int)(sizeof(troubles) / sizeof(troubles[0]))

/* The daemon before a reload to a configuration with further listeners. */
struct before {
    struct play *play;
    struct play_process *master;
    unsigned descriptors;
    pid_t worker;
};

static struct before begin(void)
{
    struct before before = { .play = case_start(2, "", "") };

    case_status(before.play, "state"); /* opens what stays open */
    play_settle(before.play);
    before.master = play_main(before.play);
    before.descriptors = play_count_descriptors(before.master);
    before.worker = play_worker_find(before.play, 0)->process->pid;
    play_configure(before.play, 2, "", OTHER);
    return before;
}

/* The reload has failed for the reason, and left nothing. */
static void expect_unchanged(
    const struct before *before, struct play_client *client, const char *says)
{
    struct play *play = before->play;
    struct play_client *other;

    case_expect_failure(client, says);
    case_expect_failure(client, "\"generation\":1");
    play_client_close(play, client);
    play_pass(play, 3000);
    ck_assert_ptr_eq(play_main(play), before->master);
    ck_assert_uint_eq(play_count_workers(play), 2);
    ck_assert_int_eq(play_worker_find(play, 0)->process->pid, before->worker);
    ck_assert_uint_eq(play_count_descriptors(before->master), before->descriptors);
    ck_assert_str_eq(case_status(play, "state"), "running");
    ck_assert_str_eq(case_status(play, "reload.ok"), "false");
    other = play_connect(play);
    ck_assert_ptr_nonnull(other);
    play_settle(play);
    ck_assert(other->replied);
}

/* The same configuration is reloaded after the end of the trouble. */
static void reload_succeeds(const struct before *before)
{
    case_reload(before->play);
    ck_assert(case_has(before->play, "other"));
    ck_assert_str_eq(case_status(before->play, "reload.ok"), "true");
    play_destroy(before->play);
}

START_TEST(test_workers_of_reload_do_not_start)
{
    struct before before = begin();
    struct play *play = before.play;
    struct play_client *client = play_control(play, "control", "reload");

    case_step_to_fork(play, PROCESS_CHECK); /* the configuration is good */
    play->forked = troubles[_i].forked;
    play->failures.fork = troubles[_i].fork;
    play_settle(play);
    expect_unchanged(&before, client, troubles[_i].says);
    ck_assert(!case_has(play, "other"));
    reload_succeeds(&before);
}
END_TEST

/* The same fails the daemon's start. */
START_TEST(test_workers_of_daemon_do_not_start)
{
    struct play *play = play_create(1);
    struct play_process *master;

    play_configure(play, 2, "", "");
    master = play_start(play);
    case_step_to_fork(play, PROCESS_CHECK);
    play->forked = troubles[_i].forked;
    play->failures.fork = troubles[_i].fork;
    play_pass(play, 3000);
    ck_assert(master->exited);
    ck_assert(play_has_logged(play, troubles[_i].says));
    ck_assert(play_has_logged(play, "nothing is served"));
    ck_assert_int_eq(play_exit_code(master), EXIT_FAILURE);
    ck_assert_uint_eq(play_count_workers(play), 0);
    ck_assert(!case_has(play, "socket") && !case_has(play, "pid") && !case_has(play, "control"));
    play_destroy(play);
}
END_TEST

/* Addresses in the new configuration alone are not free. */
START_TEST(test_listener_cannot_be_bound)
{
    static const char *const says[] = { "failed: the socket is in use",
        "failed: the path exists and is not a socket", "failed (98: Address already in use)" };
    struct before before = begin();
    struct play *play = before.play;
    int fd = -1;

    if (_i == 0)
        fd = case_listen(play, "other");
    else if (_i == 1)
        play_write(play, "other", "a file");
    else
        fd = bind_address(play);
    if (_i == 2)
        ck_assert_int_eq(listen(fd, 1), 0);
    expect_unchanged(&before, case_command(play, "reload"), says[_i]);
    ck_assert_int_eq(case_has(play, "other"), _i != 2); /* another process has it */
    unlink(play_path(play, "other"));
    close(fd);
    reload_succeeds(&before);
}
END_TEST

/* The address is bound, and a foreign process listens on it before the commit. */
START_TEST(test_listener_cannot_listen)
{
    struct before before = begin();
    struct play *play = before.play;
    struct play_client *client;
    struct play_process *new;
    int fd = bind_address(play);

    client = play_control(play, "control", "reload");
    new = case_step_to_fork(play, PROCESS_WORKER);
    new->kept = true;
    ck_assert_int_eq(listen(fd, 1), 0);
    while (!new->exited &&new->worker->phase < PLAY_WORKER_ACCEPTS)
        ck_assert(play_step(play));
    ck_assert(!new->exited); /* clients of listeners already listening are accepted */
    play_settle(play);
    ck_assert(new->exited);
    ck_assert(play_has_logged(play, "listen() to"));
    expect_unchanged(&before, client, "a listener could not be opened");
    ck_assert(!case_has(play, "other"));
    close(fd);
    reload_succeeds(&before);
}
END_TEST

/* The same at the daemon's start may pass by itself: the exit code says so. */
START_TEST(test_listener_of_daemon_cannot_listen)
{
    struct play *play = play_create(1);
    struct play_process *master;
    int fd = bind_address(play);

    play_configure(play, 2, "", OTHER);
    master = play_start(play);
    case_step_to_fork(play, PROCESS_WORKER);
    ck_assert_int_eq(listen(fd, 1), 0);
    play_pass(play, 3000);
    ck_assert(master->exited);
    ck_assert_int_eq(play_exit_code(master), EX_TEMPFAIL);
    ck_assert(!case_has(play, "other") && !case_has(play, "socket") && !case_has(play, "pid"));
    close(fd);
    play_destroy(play);
}
END_TEST

/* A listener closed by a quit is not in the configuration of the resume: its path is a foreign
 * process's by then, and stays, even with the inode of the removed socket. */
START_TEST(test_closed_listener_is_dropped)
{
    struct play *play = case_start(1, "", OTHER);
    struct play_client *client;
    char control[64], other[128];

    ck_assert_ptr_nonnull(play_connect(play)); /* a session, for which the quit waits */
    play_settle(play);
    snprintf(other, sizeof(other), "%s", play_path(play, "other"));
    ck_assert_int_eq(link(other, play_path(play, "link")), 0);
    snprintf(control, sizeof(control), "control.quit.%d", (int)play_main(play)->pid);
    case_expect_ok(case_command(play, "quit"));
    ck_assert(!case_has(play, "other"));
    ck_assert_int_eq(rename(play_path(play, "link"), other), 0);
    play_configure(play, 1, "", "");
    client = case_command_to(play, control, "resume");
    play_pass(play, 1000);
    case_expect_ok(client);
    ck_assert(case_is_served(play) && case_has(play, "other"));
    play_destroy(play);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_workers_of_reload_do_not_start, 0, TROUBLES);
    tcase_add_loop_test(tcase, test_workers_of_daemon_do_not_start, 0, TROUBLES);
    tcase_add_loop_test(tcase, test_listener_cannot_be_bound, 0, 3);
    tcase_add_test(tcase, test_listener_cannot_listen);
    tcase_add_test(tcase, test_listener_of_daemon_cannot_listen);
    tcase_add_test(tcase, test_closed_listener_is_dropped);
}

TEST_MAIN("start", add_tests)

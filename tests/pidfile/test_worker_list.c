/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of workers: the workers left behind, and processes never taken for a worker. */
#include "pidfile/worker_list.h"

#include "support/directory.h"
#include "support/memory_log.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORD 40

/* A killed master process of the test, and the worker left. */
struct scene {
    struct memory_log log;
    struct worker_list list; /* of this process */
    char pid_path[64], left_path[96];
    pid_t master, worker;
};

/* Forks a process waiting for an end by a signal. */
static pid_t fork_process(void)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static void end_process(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* In the process to be killed: lists the worker, and reports. */
static void be_master(struct scene *scene, int said)
{
    struct worker_list list;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker_list_open(&list, scene->pid_path, &scene->log.log);
    worker_list_add(&list, 7, scene->worker);
    test_require(write(said, "x", 1) == 1);
    for (;;)
        pause();
}

static void set_up(struct scene *scene)
{
    int ends[2];
    char said;

    memory_log_open(&scene->log, LEVEL_INFO);
    snprintf(scene->pid_path, sizeof(scene->pid_path), "%s/pid", directory);
    scene->worker = fork_process();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    scene->master = fork();
    ck_assert_int_ne(scene->master, -1);
    if (scene->master == 0)
        be_master(scene, ends[1]);
    ck_assert_int_eq(read(ends[0], &said, 1), 1);
    close(ends[0]);
    close(ends[1]);
    snprintf(scene->left_path, sizeof(scene->left_path), "%s.workers.%d", scene->pid_path,
        (int)scene->master);
    worker_list_open(&scene->list, scene->pid_path, &scene->log.log);
}

static void tear_down(struct scene *scene)
{
    end_process(scene->worker);
    worker_list_close(&scene->list);
    unlink(scene->left_path);
    memory_log_close(&scene->log);
}

static void check_worker(void *arg, const struct left_worker *left)
{
    const struct scene *scene = arg;

    ck_assert_int_eq(left->pid, scene->worker);
    ck_assert_int_eq(left->master, scene->master);
}

static unsigned count_left(struct scene *scene)
{
    return worker_list_find_left(&scene->list, check_worker, scene);
}

START_TEST(a_worker_is_left_when_its_master_dies)
{
    struct scene scene;

    set_up(&scene);
    worker_list_add(&scene.list, 3, getpid()); /* ours is not left */
    ck_assert_uint_eq(count_left(&scene), 0);
    ck_assert_int_eq(kill(scene.master, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)scene.master, &(siginfo_t) { 0 }, WEXITED | WNOWAIT), 0);
    ck_assert_uint_eq(count_left(&scene), 1); /* not reaped yet */
    end_process(scene.master);
    ck_assert_uint_eq(count_left(&scene), 1);
    worker_list_tidy(&scene.list);
    ck_assert_uint_eq(count_left(&scene), 1);
    end_process(scene.worker);
    ck_assert_uint_eq(count_left(&scene), 0);
    worker_list_tidy(&scene.list);
    ck_assert_int_eq(access(scene.left_path, F_OK), -1);
    scene.worker = fork_process();
    tear_down(&scene);
}
END_TEST

static void overwrite(const struct scene *scene, unsigned record, const char *text)
{
    int fd = open(scene->left_path, O_WRONLY | O_CLOEXEC);
    char padded[RECORD + 1];

    ck_assert_int_ne(fd, -1);
    snprintf(padded, sizeof(padded), "%-39.39s\n", text);
    ck_assert_int_eq(pwrite(fd, padded, RECORD, (off_t)record * RECORD), RECORD);
    close(fd);
}

/* A process with the pid of a worker, but of another start or boot, and files that are damaged or
 * possibly written by strangers. */
START_TEST(nobody_else_is_taken_for_one)
{
    char text[64], moved[128];
    struct scene scene;

    set_up(&scene);
    end_process(scene.master);
    ck_assert_uint_eq(count_left(&scene), 1);
    switch (_i) {
    case 0:
        snprintf(text, sizeof(text), "%d 12", (int)scene.worker);
        overwrite(&scene, 2 + 7, text);
        break;
    case 1:
        overwrite(&scene, 0, "00000000-0000-0000-0000-000000000000");
        break;
    case 2:
        ck_assert_int_eq(chmod(scene.left_path, 0622), 0);
        break;
    case 3:
        snprintf(moved, sizeof(moved), "%s.moved", scene.pid_path);
        ck_assert_int_eq(rename(scene.left_path, moved), 0);
        ck_assert_int_eq(symlink(moved, scene.left_path), 0);
        break;
    case 4:
        ck_assert_int_eq(truncate(scene.left_path, RECORD + 5), 0);
        break;
    case 5:
        ck_assert_int_eq(unlink(scene.left_path), 0);
        ck_assert_int_eq(mkfifo(scene.left_path, 0600), 0);
        break;
    case 6:
        overwrite(&scene, 2 + 7, "-1 99999999999999999999999999999999999");
        break;
    default:
        if (geteuid() == 0)
            ck_assert_int_eq(chown(scene.left_path, 12345, 0), 0);
        else
            overwrite(&scene, 2 + 7, "");
        break;
    }
    ck_assert_uint_eq(count_left(&scene), 0);
    worker_list_tidy(&scene.list);
    ck_assert_int_eq(kill(scene.worker, 0), 0);
    if (_i == 3)
        unlink(moved);
    tear_down(&scene);
}
END_TEST

START_TEST(it_is_no_harm_without)
{
    struct scene scene = { .worker = fork_process() };
    char missing[96];

    memory_log_open(&scene.log, LEVEL_INFO);
    snprintf(missing, sizeof(missing), "%s/nowhere/pid", directory);
    worker_list_open(&scene.list, missing, &scene.log.log);
    ck_assert_ptr_nonnull(
        strstr(memory_log_take(&scene.log), "cannot be written: if this process is killed, the "
                                            "next one will not know its workers (2:"));
    worker_list_add(&scene.list, 0, scene.worker);
    ck_assert_uint_eq(worker_list_find_left(&scene.list, NULL, NULL), 0);
    tear_down(&scene);
}
END_TEST

static void add_tests(TCase *tcase)
{
    directory_add(tcase);
    tcase_add_test(tcase, a_worker_is_left_when_its_master_dies);
    tcase_add_loop_test(tcase, nobody_else_is_taken_for_one, 0, 8);
    tcase_add_test(tcase, it_is_no_harm_without);
}

TEST_MAIN("worker_list", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of a keeper: asked of the master at the start, and again when they have changed. */
#include "keeper/one_keeper.h"

#include "keeper/pair_store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Answers the request for a file that the keeper will make. */
static void answer_file(const char *path, int error)
{
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    ck_assert((fd == -1) == (path == NULL));
    send_message(MESSAGE_FILE, (uint32_t)error, fd);
    if (fd != -1)
        close(fd);
}

START_TEST(files_come_from_the_master)
{
    struct tls_part part;

    prepare(2);
    send_message(MESSAGE_RESCAN, 0, -1);
    answer_file("/dev/null", 0);
    worker = -1;
    send_message(MESSAGE_TRIM, 0, -1);
    answer_file("/dev/null", 0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &tls_engine_plain), 0);
    expect_message(MESSAGE_FILE_WANTED, 0);
    expect_message(MESSAGE_FILE_WANTED, 1);
    expect_message(MESSAGE_READY, 0);
    connect_worker();
    send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
    turn(1);
    ck_assert(receive_part(&part));
    stop();
}
END_TEST

/* The pairs of the generation before are let go once the engine has taken what it needs. */
START_TEST(pairs_of_the_former_generation_are_not_kept)
{
    prepare(0);
    ck_assert_int_eq(pair_memory_reserve(&heritage.former_pairs, 1), 0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &tls_engine_plain), 0);
    ck_assert_ptr_null(keeper.files.former_pairs.p);
    ck_assert_int_eq(
        msync(heritage.former_pairs.p, heritage.former_pairs.size, MS_ASYNC), -1); /* unmapped */
    expect_message(MESSAGE_READY, 0);
    stop();
}
END_TEST

START_TEST(a_link_may_come_before_the_files)
{
    struct tls_part part;
    int ends[2];

    prepare(1);
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    worker = ends[0];
    send_message(MESSAGE_LINK, 1, ends[1]);
    send_message(MESSAGE_LINK, 2, ends[1]);
    close(ends[1]);
    send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
    answer_file("/dev/null", 0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &tls_engine_plain), 0);
    turn(1);
    ck_assert(receive_part(&part));
    stop();
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_fails_the_start)
{
    const char *lines;

    prepare(2);
    answer_file(NULL, ENOENT);
    answer_file(NULL, EACCES);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &tls_engine_plain), -1);
    lines = memory_log_take(&memory);
    ck_assert_ptr_nonnull(strstr(lines, "cannot open \"/a.crt\" in a:1 (2: No such file"));
    ck_assert_ptr_nonnull(strstr(lines, "cannot open \"/a.key\" in a:1 (13: Permission denied)"));
    expect_message(MESSAGE_FILE_WANTED, 0);
    expect_message(MESSAGE_FILE_WANTED, 1);
    expect_no_message();
    leave();
}
END_TEST

/* Loads in a process of its own, which has to end without a word of the files still to come. */
static void expect_quiet_end(int signal_number)
{
    int status;
    pid_t pid;

    signal(SIGCHLD, SIG_DFL);
    pid = fork();
    if (pid == 0) {
        if (shared_enter(heritage.shared, heritage.slot) != NULL)
            _exit(99);
        if (signal_number != 0)
            raise(signal_number); /* blocked but in the wait */
        keeper_init(&keeper, &heritage, &tls_engine_plain);
        _exit(100);
    }
    while (waitpid(pid, &status, 0) == -1)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_SUCCESS);
    ck_assert_ptr_null(strstr(memory_log_take(&memory), "/a.crt"));
}

START_TEST(a_start_ends_with_the_master)
{
    prepare(1);
    close(master);
    master = -1;
    expect_quiet_end(0);
    leave();
}
END_TEST

START_TEST(a_start_ends_by_a_signal)
{
    prepare(1);
    expect_quiet_end(SIGINT);
    leave();
}
END_TEST

static unsigned refreshed, reminded;

/* Reads a file, and is told of a change meanwhile, the first time. */
static void refresh_counted(struct tls_engine *engine, struct log *log)
{
    int fd;

    (void)engine;
    ck_assert_ptr_eq(log, &keeper.log);
    if (refreshed++ == 0)
        send_message(MESSAGE_FILES_CHANGED, 0, -1);
    send_message(MESSAGE_FILE, 0, master);
    fd = keeper.files.open(&keeper.files, 0);
    ck_assert_int_ge(fd, 0);
    close(fd);
    expect_message(MESSAGE_FILE_WANTED, 0);
}

static void remind_counted(struct tls_engine *engine, struct log *log)
{
    (void)engine;
    (void)log;
    reminded++;
}

START_TEST(changed_files_are_read_again)
{
    struct tls_engine_ops ops = tls_engine_plain;

    refreshed = reminded = 0;
    ops.refresh = refresh_counted;
    ops.remind = remind_counted;
    prepare(0);
    cycle.core.worker_processes = 1 + _i; /* the keeper is the first of its generation, or not */
    heritage.index = 1;
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &ops), 0);
    expect_message(MESSAGE_READY, 0);
    ck_assert_int_eq(keeper.files.quiet, _i);
    cycle.tls.file_n = 1;
    turn(2);
    send_message(MESSAGE_FILES_CHANGED, 0, -1);
    send_message(MESSAGE_FILES_CHANGED, 0, -1);
    turn(4);
    ck_assert_uint_eq(refreshed, 2);
    keeper.daily.expired(&keeper.loop, &keeper.daily);
    turn(2);
    ck_assert_uint_eq(refreshed, 3);
    ck_assert_uint_eq(reminded, _i == 0);
    stop();
}
END_TEST

static unsigned later, opened_n;
static int opened_error;

/* Wants the file of the handshake, and goes on when the file has come. */
static enum tls_step feed_later(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    if (opened_n == 0 && later++ == 0)
        keeper.files.want(&keeper.files, 1);
    return opened_n == 0 ? TLS_LATER : tls_engine_plain.feed(handshake, in, reply);
}

static void take_opened(struct tls_engine *engine, int fd, int error)
{
    ck_assert_ptr_eq(engine, keeper.engine);
    opened_n++;
    opened_error = error;
    ck_assert_int_eq(fd == -1, error != 0);
    if (fd != -1)
        close(fd);
}

/* Wants the two files of the handshake, the second one when the first has come. */
static enum tls_step feed_twice_later(
    struct tls_handshake *handshake, fb_bytes in, struct tls_reply *reply)
{
    if (opened_n == 2)
        return tls_engine_plain.feed(handshake, in, reply);
    if (later == opened_n) {
        later++;
        keeper.files.want(&keeper.files, 1 - opened_n);
    }
    return TLS_LATER;
}

static void refresh_by_file(struct tls_engine *engine, struct log *log)
{
    int fd;

    (void)engine;
    (void)log;
    answer_file("/dev/null", 0); /* the handshake's file comes first */
    answer_file("/dev/zero", 0);
    fd = keeper.files.open(&keeper.files, 0);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static struct tls_engine_ops awaiting_ops(void)
{
    struct tls_engine_ops ops = tls_engine_plain;

    later = opened_n = 0;
    ops.feed = feed_later;
    ops.opened = take_opened;
    ops.refresh = refresh_by_file;
    return ops;
}

/* Begins a keeper, two of whose handshakes wait for a file. */
static void start_awaiting(const struct tls_engine_ops *ops)
{
    prepare(0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, ops), 0);
    expect_message(MESSAGE_READY, 0);
    cycle.tls.file_n = 2;
    connect_worker();
    send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
    send_request(TLS_BEGIN, NUMBER(1), 0, "", 0);
    turn(2);
    ck_assert_uint_ge(later, 2);
    expect_message(MESSAGE_FILE_WANTED, 1);
    expect_no_message();
}

START_TEST(handshakes_wait_for_a_file_and_nothing_else_does)
{
    const struct tls_engine_ops ops = awaiting_ops();
    struct tls_part part;

    start_awaiting(&ops);
    send_request(TLS_CANCEL, NUMBER(0), 0, "", 0);
    turn(1);
    ck_assert_uint_eq(tls_handshakes_count(keeper.handshakes), 1);
    answer_file(_i == 0 ? "/dev/null" : NULL, _i == 0 ? 0 : ENOENT);
    turn(2);
    ck_assert_uint_eq(opened_n, 1);
    ck_assert_int_eq(opened_error, _i == 0 ? 0 : ENOENT);
    ck_assert(receive_part(&part));
    ck_assert_uint_eq(part.number, NUMBER(1));
    ck_assert_int_eq(part.step, TLS_MORE);
    ck_assert(!keeper.resumes);
    stop();
}
END_TEST

/* The turn that gives the handshake a file asks for the next one, because the wait behind may be
 * without end. */
START_TEST(a_handshake_may_want_another_file)
{
    struct tls_engine_ops ops = awaiting_ops();
    struct tls_part part;

    ops.feed = feed_twice_later;
    prepare(0);
    ck_assert_int_eq(keeper_init(&keeper, &heritage, &ops), 0);
    expect_message(MESSAGE_READY, 0);
    cycle.tls.file_n = 2;
    connect_worker();
    send_request(TLS_BEGIN, NUMBER(0), 0, "", 0);
    turn(2);
    expect_message(MESSAGE_FILE_WANTED, 1);
    answer_file("/dev/null", 0);
    turn(2); /* receives the file, and gives it to the engine */
    ck_assert_uint_eq(opened_n, 1);
    expect_message(MESSAGE_FILE_WANTED, 0);
    answer_file("/dev/null", 0);
    turn(2);
    ck_assert(receive_part(&part));
    ck_assert_int_eq(part.step, TLS_MORE);
    stop();
}
END_TEST

START_TEST(a_file_that_is_waited_for_comes_after_the_wanted_one)
{
    const struct tls_engine_ops ops = awaiting_ops();
    struct tls_part part;

    start_awaiting(&ops);
    send_message(MESSAGE_FILES_CHANGED, 0, -1);
    turn(2);
    expect_message(MESSAGE_FILE_WANTED, 0);
    ck_assert_uint_eq(opened_n, 1);
    ck_assert(receive_part(&part));
    ck_assert(receive_part(&part));
    stop();
}
END_TEST

START_TEST(without_a_master_a_wanted_file_is_an_error)
{
    const struct tls_engine_ops ops = awaiting_ops();
    struct tls_part part;

    start_awaiting(&ops);
    close(master);
    master = -1;
    turn(2);
    ck_assert_uint_eq(opened_n, 1);
    ck_assert_int_eq(opened_error, EPIPE);
    ck_assert(receive_part(&part));
    ck_assert_ptr_nonnull(strstr(memory_log_take(&memory), "the master process has gone"));
    stop();
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, files_come_from_the_master);
    tcase_add_test(tcase, pairs_of_the_former_generation_are_not_kept);
    tcase_add_test(tcase, a_link_may_come_before_the_files);
    tcase_add_test(tcase, a_file_that_cannot_be_opened_fails_the_start);
    tcase_add_test(tcase, a_start_ends_with_the_master);
    tcase_add_test(tcase, a_start_ends_by_a_signal);
    tcase_add_loop_test(tcase, changed_files_are_read_again, 0, 2);
    tcase_add_loop_test(tcase, handshakes_wait_for_a_file_and_nothing_else_does, 0, 2);
    tcase_add_test(tcase, a_handshake_may_want_another_file);
    tcase_add_test(tcase, a_file_that_is_waited_for_comes_after_the_wanted_one);
    tcase_add_test(tcase, without_a_master_a_wanted_file_is_an_error);
}

TEST_MAIN("keeper_files", add_tests)

/* SPDX-License-Identifier: BSD-2-Clause */
/* The contract: listeners are level-triggered, and where a mechanism can have one of several
 * waiting processes woken, no client is left behind. */
#include "contract/contract.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4

static struct watched *watch_listener(struct fixture *fixture, int fd)
{
    struct watched *watched = watch_fd(fixture, fd);

    watched->source.queue = QUEUE_ACCEPT;
    return watched;
}

START_TEST(a_listener_is_level_triggered)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct loop *loop = fixture->loop;
    struct sockaddr_in address;
    struct watched *listener = watch_listener(fixture, make_listener(&address));
    int clients[2];

    for (int exclusive = 0; exclusive < 2; exclusive++) {
        unsigned runs;

        ck_assert_int_eq(source_arm_listener(loop, &listener->source, exclusive), 0);
        check_quiet(fixture);
        clients[0] = make_client(&address);
        clients[1] = make_client(&address);
        listener->runs[EVENT_READ] = 0;
        turn_until(fixture, listener->runs[EVENT_READ] >= 3); /* reported while it lasts */
        for (int i = 0; i < 2; i++) {
            fixture_turn_waiting(fixture, 1000);
            accept_once(listener);
            close_end(clients[i]);
        }
        check_quiet(fixture);

        source_disarm_listener(loop, &listener->source);
        clients[0] = make_client(&address);
        check_quiet(fixture);
        ck_assert_int_eq(source_arm_listener(loop, &listener->source, exclusive), 0);
        runs = listener->runs[EVENT_READ];
        turn_until(fixture, listener->runs[EVENT_READ] > runs); /* for a client from before */
        source_disarm_listener(loop, &listener->source);
        accept_once(listener);
        close_end(clients[0]);
    }
    ck_assert_uint_eq(listener->runs[EVENT_WRITE], 0);
    unwatch(&listener);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_disarmed_listener_is_not_run)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct sockaddr_in address;
    struct watched *listener = watch_listener(fixture, make_listener(&address));
    int client = make_client(&address);

    ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
    ck_assert_int_eq(
        source_arm_listener(fixture->loop, &listener->source, false), 0); /* no effect */
    while (TAILQ_EMPTY(&fixture->loop->queues[QUEUE_ACCEPT]))
        loop_wait(fixture->loop, 1000);
    source_disarm_listener(fixture->loop, &listener->source);
    loop_run(fixture->loop, QUEUE_ACCEPT);
    ck_assert_uint_eq(listener->runs[EVENT_READ], 0);
    source_disarm_listener(fixture->loop, &listener->source);
    close_end(client);
    unwatch(&listener);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_closed_listener_is_watched_by_nobody)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct sockaddr_in address;
    int fd = make_listener(&address), kept = dup(fd), client; /* kept open, like the master's */
    struct watched *listener = watch_listener(fixture, fd);

    ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
    unwatch(&listener);
    client = make_client(&address);
    check_quiet(fixture);
    close(client);
    close(kept);
    fixture_stop(fixture);
}
END_TEST

/* Several processes that wait for one listener */

struct workers {
    pid_t pids[WORKERS];
    int reports; /* a byte per client served, and '-' per vain wake-up */
};

static unsigned served_n; /* a worker's share */

static void serve_all(struct watched *watched)
{
    int fd;

    while ((fd = accept(watched->source.fd, NULL, NULL)) != -1) {
        served_n++;
        close(fd);
    }
}

/* Serves until it has had a client, then steps back from the emptied listener. */
static _Noreturn void work_until_told(int i, int listener_fd, int reports)
{
    struct fixture *fixture = contract_start(i, 1);
    struct watched *listener = watch_listener(fixture, listener_fd);

    listener->then = serve_all;
    if (source_arm_listener(fixture->loop, &listener->source, true) == -1)
        _exit(1);
    while (served_n == 0) {
        unsigned runs = listener->runs[EVENT_READ];

        fixture_turn_waiting(fixture, -1);
        if (served_n == 0 && listener->runs[EVENT_READ] > runs && write(reports, "-", 1) != 1)
            _exit(1);
    }
    source_disarm_listener(fixture->loop, &listener->source);
    while (served_n-- > 0)
        if (write(reports, "+", 1) != 1)
            _exit(1);
    _exit(0);
}

/* 'S' while it sleeps in the wait, the only place to sleep. */
static char state_of(pid_t pid)
{
    char path[64], text[512];
    char *end;
    int fd;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd == -1 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd != -1)
        close(fd);
    if (n <= 0)
        return 'Z';
    text[n] = '\0';
    end = strrchr(text, ')');
    return end != NULL ? end[2] : 'Z';
}

/* Until every worker sleeps or has gone; says how many sleep. */
static unsigned wait_until_asleep(const struct workers *workers)
{
    uint64_t deadline = now_us() + TEST_PATIENCE_MS * 1000;

    for (;;) {
        unsigned asleep = 0, gone = 0;

        for (int i = 0; i < WORKERS; i++) {
            char state = state_of(workers->pids[i]);

            asleep += state == 'S';
            gone += state == 'Z';
        }
        if (asleep + gone == WORKERS)
            return asleep;
        ck_assert_msg(now_us() < deadline, "the workers do not come to rest");
        sched_yield();
    }
}

static void count_reports(const struct workers *workers, unsigned *served, unsigned *in_vain)
{
    char bytes[256];
    ssize_t n;

    while ((n = read(workers->reports, bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < n; i++)
            ++*(bytes[i] == '+' ? served : in_vain);
}

static void start_workers(struct workers *workers, int i, int listener)
{
    int reports[2];

    ck_assert_int_eq(pipe2(reports, O_CLOEXEC | O_NONBLOCK), 0);
    for (int w = 0; w < WORKERS; w++) {
        workers->pids[w] = fork();
        ck_assert_int_ne(workers->pids[w], -1);
        if (workers->pids[w] == 0)
            work_until_told(i, listener, reports[1]);
    }
    close(reports[1]);
    workers->reports = reports[0];
}

static int connect_to(const struct sockaddr_un *address, socklen_t length)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)address, length), 0);
    return fd;
}

/* A unix socket; the connect() wakes a waiter before the return. */
START_TEST(no_client_is_left_behind)
{
    const struct mechanism *mechanism = mechanism_at(_i);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    socklen_t length = sizeof(address);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct workers workers;

    ck_assert_int_ne(listener, -1);
    /* without a path the kernel gives an abstract name */
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    start_workers(&workers, _i, listener);
    ck_assert_uint_eq(wait_until_asleep(&workers), WORKERS);

    for (unsigned client = 1; client <= WORKERS; client++) {
        unsigned served = 0, in_vain = 0, waited = WORKERS + 1 - client;
        int fd = connect_to(&address, length);

        ck_assert_uint_eq(wait_until_asleep(&workers), waited - 1); /* the other has gone */
        count_reports(&workers, &served, &in_vain);
        ck_assert_uint_eq(served, 1);
        if (mechanism->exclusive && waited > 1)
            ck_assert_uint_lt(served + in_vain, waited);
        close(fd);
    }
    for (int w = 0; w < WORKERS; w++) {
        int status;

        ck_assert_int_eq(waitpid(workers.pids[w], &status, 0), workers.pids[w]);
        ck_assert_int_eq(status, 0);
    }
    close(workers.reports);
    close(listener);
}
END_TEST

/* Another socket takes the number of a listener, as after the listener was shut down. */
START_TEST(a_listener_with_another_socket_is_watched_anew)
{
    struct sockaddr_in address, other;
    int fd = make_listener(&address), client;
    struct fixture *fixture = contract_start(_i, 2);
    struct watched *listener = watch_listener(fixture, fd);

    ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
    check_quiet(fixture);
    for (unsigned i = 1; i <= 3; i++) {
        int replacement = make_listener(&other);

        source_disarm_listener(fixture->loop, &listener->source);
        ck_assert_int_eq(dup2(replacement, fd), fd);
        close(replacement);
        ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
        check_quiet(fixture);
        client = make_client(&other);
        turn_until(fixture, listener->runs[EVENT_READ] >= i);
        accept_once(listener);
        close(client);
        listener->runs[EVENT_READ] = i;
    }
    ck_assert_str_eq(fixture_logged(fixture), "");
    unwatch(&listener);
    fixture_stop(fixture);
}
END_TEST

START_TEST(a_released_listener_gives_its_address_up)
{
    struct fixture *fixture = contract_start(_i, 1);
    struct sockaddr_in address;
    struct watched *listener = watch_listener(fixture, make_listener(&address));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(source_arm_listener(fixture->loop, &listener->source, false), 0);
    check_quiet(fixture);
    source_disarm_listener(fixture->loop, &listener->source);
    source_release_disarmed(fixture->loop);
    unwatch(&listener);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    fixture_stop(fixture);
}
END_TEST

static void add_tests(TCase *tcase, int from, int to)
{
    tcase_add_loop_test(tcase, a_listener_is_level_triggered, from, to);
    tcase_add_loop_test(tcase, a_disarmed_listener_is_not_run, from, to);
    tcase_add_real_test(tcase, a_closed_listener_is_watched_by_nobody, from, to);
    tcase_add_real_test(tcase, a_listener_with_another_socket_is_watched_anew, from, to);
    tcase_add_real_test(tcase, a_released_listener_gives_its_address_up, from, to);
    tcase_add_real_test(tcase, no_client_is_left_behind, from, to);
}

CONTRACT_MAIN("listeners", add_tests)

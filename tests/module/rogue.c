/* SPDX-License-Identifier: BSD-2-Clause */
/* A module that breaks its worker by a client's letter, or by directives: at the worker's start
 * ("rogue_start WAY") and stop ("rogue_stop WAY"). Unknown letters are echoed. */
#include <forkbeard/forkbeard.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS 256 /* more than a worker has here */

static char at_start[16], at_stop[16];
static fb_conn *ended; /* a connection that has ended */
static _Atomic int jobs_begun, jobs_forked;

static void crash(void)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGSEGV);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would exit */
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(SIGSEGV);
}

/* Outlasts every deadline of a test: a hanging process is killed. */
static void hang(void)
{
    for (;;)
        nanosleep(&(struct timespec) { .tv_sec = 60 }, NULL);
}

static int meet(const char *way)
{
    if (strcmp(way, "crash") == 0)
        crash();
    if (strcmp(way, "exit") == 0)
        _exit(4);
    if (strcmp(way, "hang") == 0)
        hang();
    return 0;
}

static void close_all(void)
{
    syscall(SYS_close_range, 3u, ~0u, 0u);
}

/* The descriptor of the event mechanism, if epoll. */
static void close_epoll(void)
{
    struct epoll_event event;

    for (int fd = 3; fd < DESCRIPTORS; fd++)
        if (epoll_wait(fd, &event, 1, 0) != -1)
            close(fd);
}

/* The channel to the master is the only socket of packets. */
static void close_channel(void)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        int type = 0;
        socklen_t length = sizeof(type);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET)
            close(fd);
    }
}

static void ignore_signals(void)
{
    for (int number = 1; number < NSIG; number++)
        if (number != SIGSEGV && number != SIGABRT)
            signal(number, SIG_IGN);
}

/* Keeps a thread busy for longer than any test waits. */
static void sleep_as_job(void *job)
{
    (void)job;
    jobs_begun++;
    nanosleep(&(struct timespec) { .tv_sec = 60 }, NULL);
}

static void crash_as_job(void *job)
{
    (void)job;
    crash();
}

static void exit_as_job(void *job)
{
    (void)job;
    _exit(5);
}

static void leave_as_job(void *job)
{
    (void)job;
    pthread_exit(NULL);
}

static void fork_as_job(void *job)
{
    (void)job;
    fork();
    jobs_forked++;
}

static void do_nothing(fb_worker *worker, void *job)
{
    (void)worker;
    (void)job;
}

static void run(fb_conn *conn, void (*work)(void *job))
{
    fb_run(fb_worker_of(conn), work, do_nothing, NULL, 0);
}

/* The child comes back ("c"), or calls the SDK ("w", "r") and stays otherwise; the parent echoes
 * the letter, or "n" where there is no child. */
static void fork_child(fb_conn *conn, char then)
{
    fb_worker *worker = fb_worker_of(conn);
    pid_t pid = fork();

    if (pid == -1)
        then = 'n';
    if (pid == 0 && then == 'c')
        return;
    if (pid == 0 && then == 'r')
        fb_run(worker, sleep_as_job, do_nothing, NULL, 0);
    fb_write(conn, &then, 1);
    if (pid == 0)
        hang();
}

static void handle_command(fb_conn *conn, char letter)
{
    switch (letter) {
    case 'j':
        run(conn, sleep_as_job);
        while (jobs_begun == 0)
            sched_yield();
        fb_write(conn, &letter, 1);
        break;
    case 'K':
        run(conn, crash_as_job);
        break;
    case 'X':
        run(conn, exit_as_job);
        break;
    case 'P':
        run(conn, leave_as_job);
        break;
    case 'F':
        run(conn, fork_as_job);
        while (jobs_forked == 0)
            sched_yield();
        fb_write(conn, &letter, 1);
        break;
    case 't':
        if (fb_worker_timer(fb_worker_of(conn), 1, 1) == -1)
            fb_abort(conn);
        break;
    case 'k':
        crash();
        break;
    case 'l':
        fputs("rogue has something to say\n", stderr);
        fb_write(conn, &letter, 1);
        break;
    case 'L': /* more than a pipe holds */
        for (int i = 0; i < 20000; i++)
            fputs("rogue says this 20,000 times\n", stderr);
        fb_write(conn, &letter, 1);
        break;
    case 'A':
        signal(SIGABRT, SIG_DFL);
        assert(letter == 'a');
        break;
    case 'x':
        exit(0);
        break;
    case 'y':
        _exit(3);
        break;
    case 'p':
        pthread_exit(NULL);
        break;
    case 'i':
        ignore_signals();
        fb_write(conn, &letter, 1);
        break;
    case 'a':
        close_all();
        break;
    case 'e':
        close_epoll();
        break;
    case 'C':
        close_channel();
        fb_write(conn, &letter, 1);
        break;
    case 'c':
    case 'w':
    case 'r':
        fork_child(conn, letter);
        break;
    case 'o':
        ended = conn;
        fb_close(conn);
        break;
    case 'u':
        fb_write(ended, "u", 1);
        fb_write(conn, &letter, 1);
        break;
    default:
        fb_write(conn, &letter, 1);
        break;
    }
}

static size_t rogue_data(fb_conn *conn, void *state, fb_bytes in)
{
    (void)state;
    for (size_t i = 0; i < in.n; i++)
        handle_command(conn, (char)in.p[i]);
    return in.n;
}

static int rogue_worker_start(fb_worker *worker, void *state)
{
    (void)worker;
    (void)state;
    return meet(at_start);
}

static void rogue_worker_stop(fb_worker *worker, void *state)
{
    (void)worker;
    (void)state;
    meet(at_stop);
}

static void rogue_timer(fb_worker *worker, void *state, uint32_t id)
{
    (void)worker;
    (void)state;
    (void)id;
    crash();
}

static int set_start(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)n;
    strncpy(at_start, args[0], sizeof(at_start) - 1);
    return 0;
}

static int set_stop(fb_conf *conf, void *value, const char *const *args, uint32_t n)
{
    (void)conf;
    (void)value;
    (void)n;
    strncpy(at_stop, args[0], sizeof(at_stop) - 1);
    return 0;
}

static const fb_directive directives[] = {
    { .name = "rogue", .value = FB_VALUE_NONE, .flags = FB_DIRECTIVE_HANDLER },
    { .name = "rogue_start",
        .value = FB_VALUE_CUSTOM,
        .set = set_start,
        .args_least = 1,
        .args_most = 1 },
    { .name = "rogue_stop",
        .value = FB_VALUE_CUSTOM,
        .set = set_stop,
        .args_least = 1,
        .args_most = 1 },
};

static const fb_ops ops = { .size = sizeof(fb_ops), .data = rogue_data };
static const fb_worker_ops worker_ops = { .size = sizeof(fb_worker_ops), .timer = rogue_timer };

FB_PROTOCOL(rogue) = {
    FB_PROTOCOL_HEADER,
    .name = "rogue",
    FB_PROTOCOL_DIRECTIVES(directives),
    .ops = &ops,
    .worker_start = rogue_worker_start,
    .worker_stop = rogue_worker_stop,
    .worker_ops = &worker_ops,
#ifdef ROGUE_NEEDS
    .needs = ROGUE_NEEDS,
#endif
};

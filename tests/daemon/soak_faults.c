/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks a worker, watches the clients of the rest, reloads, breaks a second worker, and ends the
 * daemon. A wait for the broken worker would exceed the test's deadlines. */
#include "daemon/soak_faults.h"

#include "daemon/abreast.h"
#include "daemon/client.h"
#include "daemon/control.h"
#include "daemon/daemon.h"
#include "daemon/proc.h"
#include "daemon/steady_clients.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKERS 4
#define SHUTDOWN_MS 2000
#define LOG_MOST 1000000

static const char *const names[SOAK_FAULTS] = {
    [SOAK_FAULTS_STOPPED] = "a stopped worker",
    [SOAK_FAULTS_NO_EPOLL] = "a worker without its epoll descriptor",
    [SOAK_FAULTS_NO_DESCRIPTORS] = "a worker without descriptors",
    [SOAK_FAULTS_FORKED] = "a worker that forked",
    [SOAK_FAULTS_JOB] = "a worker in a job of 10 minutes",
    [SOAK_FAULTS_LOG_READER] = "a pipe for a log that nobody reads",
    [SOAK_FAULTS_MASTER] = "a stopped master",
};

/* Words to module/attacker.c. */
static const char *const commands[SOAK_FAULTS] = {
    [SOAK_FAULTS_NO_EPOLL] = "close anon_inode:[eventpoll]\n",
    [SOAK_FAULTS_NO_DESCRIPTORS] = "close all\n",
    [SOAK_FAULTS_FORKED] = "fork\n",
    [SOAK_FAULTS_JOB] = "job 600\n",
};

struct faults {
    const struct soak_faults_plan *plan;
    struct daemon *daemon;
    struct steady_clients clients;
    int breaker; /* the session with a broken worker, or -1 */
    int unread;  /* the end of a pipe */
};

static int unread_end = -1; /* the test's descriptor of the pipe for standard error */

/* In the child, after closing the test's descriptors. */
static void lend_full_pipe(void)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(), unread_end);
    fd = open(path, O_WRONLY | O_NONBLOCK);
    if (fd == -1 || fcntl(fd, F_SETFL, 0) == -1 || dup2(fd, STDERR_FILENO) == -1)
        _exit(124);
    close(fd);
}

/* A pipe that takes nothing more. */
static void make_full_pipe(struct faults *faults)
{
    int ends[2];
    static const char zeros[4096];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(ends[1], zeros, sizeof(zeros)) > 0)
        ;
    faults->unread = ends[0];
    unread_end = ends[1];
}

/* Waits until so many more clients have been served, or one was not. */
static void wait_served(struct faults *faults, unsigned n)
{
    const struct steady_clients *clients = &faults->clients;
    unsigned from = atomic_load(&clients->served);

    WAIT_FOR(atomic_load(&clients->served) - from >= n || atomic_load(&clients->failed) > 0);
}

static void begin_faults(struct faults *faults)
{
    struct daemon *daemon = faults->daemon = daemon_create(2);
    bool reader = faults->plan->fault == SOAK_FAULTS_LOG_READER;

    faults->breaker = faults->unread = -1;
    daemon_expects(daemon, "[alert]");
    daemon_expects(daemon, "[emerg]");
    daemon_expects(daemon, "[crit]");
    daemon_configure(daemon,
        "load_module " MODULES_PATH "/attacker.so; worker_processes %d;\n"
        "worker_shutdown_timeout %dms; %s\n"
        "events {}\n"
        "stream { server { listen 127.0.0.1:$0; echo; }\n"
        "server { listen 127.0.0.1:$1; attacker; } }\n",
        WORKERS, SHUTDOWN_MS, reader ? "error_log stderr info;" : "");
    if (reader) {
        make_full_pipe(faults);
        daemon->before_exec = lend_full_pipe;
    }
    daemon_start(daemon);
    steady_clients_start(&faults->clients, daemon->ports[0]);
    steady_clients_watch(&faults->clients);
    wait_served(faults, 20);
}

/* Stops the worker that has just accepted: most likely the holder of the accept mutex. */
static void stop_worker(struct faults *faults)
{
    faults->breaker = client_open(faults->daemon->ports[0]);
    client_echo(faults->breaker, "served");
    proc_freeze(proc_server_of(faults->daemon->pid, faults->breaker));
}

/* Returns when it is broken: clients from then on may not have to wait. */
static void break_something(struct faults *faults)
{
    struct daemon *daemon = faults->daemon;
    const char *command = commands[faults->plan->fault];

    if (faults->breaker != -1)
        close(faults->breaker);
    faults->breaker = -1;
    if (faults->plan->fault == SOAK_FAULTS_MASTER)
        proc_freeze(daemon->pid);
    if (faults->plan->fault == SOAK_FAULTS_STOPPED)
        stop_worker(faults);
    if (command == NULL)
        return;
    faults->breaker = client_open(daemon->ports[1]);
    client_send(faults->breaker, command);
    WAIT_FOR(!client_is_quiet(faults->breaker)); /* an answer has come, or the worker's end */
}

/* A command line whose master does not answer ends by itself, and says why. */
static void check_command_line(struct daemon *daemon)
{
    ck_assert_int_ne(daemon_run(daemon, "status", "-c", "forkbeard.conf", NULL), 0);
    ck_assert_str_ne(daemon->err, "");
}

static void reload(struct daemon *daemon)
{
    struct json_value answer = control_ask(daemon, "reload");

    ck_assert_msg(control_is_ok(answer), "%.*s", (int)answer.n, answer.text);
}

static void check_log(struct faults *faults, const char *name)
{
    struct stat st;

    if (stat(daemon_path(faults->daemon, name), &st) == 0)
        ck_assert_msg(
            st.st_size <= LOG_MOST, "%s has grown to %jd bytes", name, (intmax_t)st.st_size);
}

/* The daemon ends although a worker is broken just then. */
static void end_faults(struct faults *faults)
{
    struct daemon *daemon = faults->daemon;

    break_something(faults);
    if (faults->plan->fault == SOAK_FAULTS_MASTER)
        ck_assert_int_eq(kill(daemon->pid, SIGCONT), 0);
    daemon_stop(daemon, faults->plan->quits ? SIGQUIT : SIGTERM);
    steady_clients_stop(&faults->clients);
    if (faults->breaker != -1)
        close(faults->breaker);
    if (faults->unread != -1)
        close(faults->unread);
    if (unread_end != -1)
        close(unread_end);
    unread_end = -1;
    check_log(faults, "error.log");
    check_log(faults, "daemon.err");
    proc_reap_orphans();
    daemon_finish(daemon);
}

void soak_faults(const struct soak_faults_plan *plan)
{
    static struct faults faults;
    struct steady_clients *clients = &faults.clients;

    faults = (struct faults) { .plan = plan };
    abreast_note("%s, then %s", names[plan->fault], plan->quits ? "QUIT" : "TERM");
    begin_faults(&faults);
    steady_clients_check(clients, "before", plan->delay_ms);
    break_something(&faults);
    steady_clients_watch(clients);
    wait_served(&faults, plan->clients / 3);
    if (plan->delay_ms != 0) { /* clients may wait for a holder of the accept mutex at first */
        steady_clients_check(clients, names[plan->fault], 0);
        steady_clients_watch(clients);
    }
    if (plan->fault == SOAK_FAULTS_MASTER) {
        check_command_line(faults.daemon);
        ck_assert_int_eq(kill(faults.daemon->pid, SIGCONT), 0);
    }
    reload(faults.daemon);
    wait_served(&faults, plan->clients - plan->clients / 3);
    WAIT_FOR(proc_child_n(faults.daemon->pid) == WORKERS);
    steady_clients_check(clients, names[plan->fault], plan->delay_ms);
    printf("%s: %u clients were served within %u ms\n", names[plan->fault],
        atomic_load(&clients->served), atomic_load(&clients->slowest_ms));
    end_faults(&faults);
}

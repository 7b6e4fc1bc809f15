/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of the real system, and its side of signals: dispositions, handlers, masks. */
#include "process/process_ops.h"

#include "base/compiler.h"
#include "os/process.h"
#include "os/wakeup.h"
#include "process/environment.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

const struct process_ops *process_ops = &process_ops_system;

static pid_t fork_child(enum process_kind kind, NORETURN void (*child)(void *arg), void *arg)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (kind == PROCESS_CHECK)
        os_process_end_with_parent(CONFIG_CHECK_MS / 1000 + 1);
    child(arg);
}

static pid_t fork_heir(void (*parent)(void *arg, pid_t heir), void *arg)
{
    pid_t pid = fork();

    if (pid > 0)
        parent(arg, pid);
    else if (pid == 0)
        free(arg);
    return pid;
}

static pid_t find_exited(void)
{
    siginfo_t info = { .si_pid = 0 };

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid : 0;
}

static pid_t reap(pid_t pid, int *status, bool wait)
{
    return waitpid(pid, status, wait ? 0 : WNOHANG);
}

static void deliver_signal(int number, siginfo_t *info, void *context)
{
    bool by_process = info->si_code == SI_USER || info->si_code == SI_QUEUE;
    int saved = errno;

    (void)context;
    signals_deliver(number, by_process ? info->si_pid : SIGNALS_BY_KERNEL);
    errno = saved;
}

static void reset_handlers(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    sigemptyset(&action.sa_mask);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* fails for those that cannot be caught */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void process_ignore_pipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

static NORETURN void end_process(int number)
{
    _exit(128 + number); /* the exit code by which a shell reports a signal */
}

void process_end_as_first(void)
{
    static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM };
    struct sigaction action = { .sa_handler = end_process };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < countof(numbers) && getpid() == 1; i++)
        sigaction(numbers[i], &action, NULL);
}

/* Installs and blocks the role's signals, and ignores the table's further signals. */
static void install_handlers(enum role role)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    for (const struct signal_row *s = signals_table; s->number != 0; s++) {
        struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = deliver_signal };

        if (s->alias)
            continue;
        if (s->commands[role] == COMMAND_NONE)
            action = (struct sigaction) { .sa_handler = SIG_IGN };
        else
            sigaddset(&blocked, s->number);
        sigfillset(&action.sa_mask);
        sigaction(s->number, &action, NULL);
    }
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* Unblocks and blocks again, so that the handlers of pending signals run. */
static void admit_signals(void)
{
    sigset_t blocked;

    sigprocmask(SIG_SETMASK, &signals_state->wait_mask, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static void pause_for(int ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    pselect(0, NULL, NULL, NULL, &time, &signals_state->wait_mask);
}

static void set_alarm(int ms)
{
    struct itimerval alarm = { .it_value = { 0, 0 } };

    if (ms != -1) {
        alarm.it_value.tv_sec = ms / 1000;
        alarm.it_value.tv_usec = ms > 0 ? ms % 1000 * 1000 : 1; /* 0 would stop it */
    }
    setitimer(ITIMER_REAL, &alarm, NULL);
}

static int begin_wakeup(void)
{
    int handlers_fd;

    if (os_wakeup_begin(&handlers_fd) == -1)
        return -1;
    if (handlers_fd != -1)
        signals_wake_by(handlers_fd);
    return 0;
}

/* Sleeps; a descriptor of the set that has had an event is COMMAND_CHANNEL, which SIGIO is too. */
static void sleep_until_wakeup(void)
{
    if (os_wakeup_sleep(&signals_state->wait_mask))
        signals_raise(COMMAND_CHANNEL);
}

const struct process_ops process_ops_system = {
    .self = getpid,
    .parent = getppid,
    .set_title = process_set_title,
    .read_clock = clock_read,
    .exit = _exit,
    .fork = fork_child,
    .fork_heir = fork_heir,
    .execute = execve,
    .find_exited = find_exited,
    .reap = reap,
    .kill = kill,
    .handle_open = os_handle_open,
    .handle_close = os_handle_close,
    .handle_has_ended = os_handle_has_ended,
    .handle_signal = os_handle_signal,
    .handle_wait = os_handle_wait,
    .proc_read = os_proc_read,
    .proc_is_stopped = os_proc_is_stopped,
    .proc_usage = os_proc_usage,
    .proc_runs = os_proc_runs,
    .reset_handlers = reset_handlers,
    .install_handlers = install_handlers,
    .admit_signals = admit_signals,
    .find_pending = sigpending,
    .raise = raise,
    .pause = pause_for,
    .set_alarm = set_alarm,
    .wakeup_begin = begin_wakeup,
    .wakeup_add = os_wakeup_add,
    .wakeup_expect = os_wakeup_expect,
    .wakeup_remove = os_wakeup_remove,
    .wakeup_sleep = sleep_until_wakeup,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of signals, their handler, and the flags that it sets. The handler only sets a flag,
 * and writes a byte to a loop that cannot wait with a mask; the loop alone reads and clears it. */
#include "process/signals.h"

#include "base/compiler.h"
#include "process/handle.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/select.h>
#include <unistd.h>

const struct signal_row signals_table[] = {
    /* master, worker, single process */
    { SIGHUP, "SIGHUP", "reload", false, "reconfiguring",
        { COMMAND_RELOAD, COMMAND_NONE, COMMAND_RELOAD } },
    { SIGHUP, "SIGHUP", "resume", true, "resuming",
        { COMMAND_RESUME, COMMAND_NONE, COMMAND_NONE } },
    { SIGUSR1, "SIGUSR1", "reopen", false, "reopening logs",
        { COMMAND_REOPEN, COMMAND_NONE, COMMAND_REOPEN } },
    { SIGUSR2, "SIGUSR2", "upgrade", false, "changing binary",
        { COMMAND_UPGRADE, COMMAND_NONE, COMMAND_UPGRADE } },
    { SIGWINCH, "SIGWINCH", NULL, false, "gracefully shutting down workers",
        { COMMAND_DRAIN, COMMAND_NONE, COMMAND_NONE } },
    { SIGTERM, "SIGTERM", NULL, false, "exiting", { COMMAND_TERM, COMMAND_TERM, COMMAND_TERM } },
    { SIGINT, "SIGINT", "stop", false, "exiting",
        { COMMAND_TERMINATE, COMMAND_TERMINATE, COMMAND_TERMINATE } },
    { SIGQUIT, "SIGQUIT", "quit", false, "shutting down",
        { COMMAND_QUIT, COMMAND_QUIT, COMMAND_QUIT } },
    { SIGQUIT, "SIGQUIT", "leave", true, "shutting down, sessions are left to a child process",
        { COMMAND_LEAVE, COMMAND_NONE, COMMAND_NONE } },
    { SIGCHLD, "SIGCHLD", NULL, false, NULL, { COMMAND_REAP, COMMAND_NONE, COMMAND_NONE } },
    { SIGALRM, "SIGALRM", NULL, false, NULL, { COMMAND_DEADLINE, COMMAND_NONE, COMMAND_NONE } },
    { SIGIO, "SIGIO", NULL, false, NULL, { COMMAND_CHANNEL, COMMAND_NONE, COMMAND_NONE } },
    { SIGPIPE, "SIGPIPE", NULL, false, NULL, { COMMAND_NONE, COMMAND_NONE, COMMAND_NONE } },
    { SIGXFSZ, "SIGXFSZ", NULL, false, NULL, { COMMAND_NONE, COMMAND_NONE, COMMAND_NONE } },
    { SIGSYS, "SIGSYS", NULL, false, NULL, { COMMAND_NONE, COMMAND_NONE, COMMAND_NONE } },
    { .number = 0 },
};

static volatile sig_atomic_t given[COMMAND_N];
volatile sig_atomic_t signals_any;
static volatile sig_atomic_t senders[COMMAND_N];
static volatile sig_atomic_t current_role;
static volatile sig_atomic_t wake_fd = -1;
static sigset_t wait_mask;

/* A full pipe is as good: the loop will wake. */
static void wake_loop(void)
{
    ssize_t written = wake_fd != -1 ? write(wake_fd, "", 1) : 0;

    (void)written;
}

static void handle_signal(int number, siginfo_t *info, void *context)
{
    bool by_process = info->si_code == SI_USER || info->si_code == SI_QUEUE;
    int saved = errno;

    (void)context;
    for (const struct signal_row *s = signals_table; s->number != 0; s++) {
        enum command command = s->commands[current_role];

        if (s->number != number || s->alias)
            continue;
        /* a terminal that is resized sends it too; only a person means it */
        if (number == SIGWINCH && !by_process)
            continue;
        senders[command] = by_process ? info->si_pid : 0;
        given[command] = 1;
        signals_any = 1;
    }
    wake_loop();
    errno = saved;
}

void signals_reset(void)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t none;

    sigemptyset(&action.sa_mask);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &action, NULL); /* fails for those that cannot be caught */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static NORETURN void end_process(int number)
{
    _exit(128 + number); /* the exit code by which a shell reports a signal */
}

void signals_end_first_process(void)
{
    static const int numbers[] = { SIGINT, SIGQUIT, SIGTERM };
    struct sigaction action = { .sa_handler = end_process };

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < countof(numbers) && getpid() == 1; i++)
        sigaction(numbers[i], &action, NULL);
}

void signals_install(enum role role)
{
    sigset_t blocked;

    assert(role < ROLE_N);
    sigemptyset(&wait_mask);
    sigemptyset(&blocked);
    current_role = role;
    wake_fd = -1;
    for (int command = 0; command < COMMAND_N; command++)
        given[command] = 0; /* the commands of the process that has forked us */

    for (const struct signal_row *s = signals_table; s->number != 0; s++) {
        struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_sigaction = handle_signal };

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

const sigset_t *signals_wait_mask(void)
{
    return &wait_mask;
}

void signals_wake_by(int fd)
{
    assert(fd >= -1);
    wake_fd = fd;
}

void signals_admit(void)
{
    sigset_t blocked;

    sigprocmask(SIG_SETMASK, &wait_mask, &blocked);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

bool signals_given(enum command command)
{
    return given[command];
}

bool signals_take(enum command command, pid_t *from)
{
    if (!given[command])
        return false;
    given[command] = 0;
    if (from != NULL)
        *from = senders[command];
    return true;
}

bool signals_sleep(int ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

    assert(ms > 0);
    if (!given[COMMAND_TERM] && !given[COMMAND_TERMINATE] && !given[COMMAND_QUIT])
        pselect(0, NULL, NULL, NULL, &time, &wait_mask);
    return !given[COMMAND_TERM] && !given[COMMAND_TERMINATE] && !given[COMMAND_QUIT];
}

void signals_send(pid_t pid, int number, struct log *log)
{
    assert(pid > 0); /* a process, never a group */
    if (kill(pid, number) == -1 && errno != ESRCH)
        log_write(log, LEVEL_ALERT, errno, "kill(%d, %d) failed", (int)pid, number);
}

void signals_send_held(pid_t pid, int handle, int number, struct log *log)
{
    if (handle == -1) /* our child keeps its pid until we reap it */
        signals_send(pid, number, log);
    else if (process_handle_signal(handle, number) == -1 && errno != ESRCH)
        log_write(
            log, LEVEL_ALERT, errno, "no signal %d could be sent to process %d", number, (int)pid);
}

void signals_forward(pid_t pid, struct log *log)
{
    sigset_t pending;

    sigpending(&pending);
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (!s->alias && s->doing != NULL && sigismember(&pending, s->number) == 1)
            signals_send(pid, s->number, log);
}

void signals_raise(enum command command)
{
    assert(command > COMMAND_NONE && command < COMMAND_N);
    senders[command] = 0;
    given[command] = 1;
    signals_any = 1;
}

const struct signal_row *signals_find(enum role role, enum command command)
{
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (s->commands[role] == command)
            return s;
    return NULL;
}

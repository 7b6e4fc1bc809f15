/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of a play's processes (struct process_ops). */
#include "plays/play_private.h"

#include "os/proc.h"
#include "plays/whole.h"
#include "plays/worker.h"
#include "process/role.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

static struct play_process *running(void)
{
    struct play_process *process = play_now->running;

    test_require(process != NULL);
    return process;
}

void play_note_call(void)
{
    struct play *play = play_now;
    struct play_process *process = play != NULL ? play->running : NULL;

    if (process != NULL && process->is_master && process->has_handlers && play->called != NULL)
        play->called(play, process);
}

/* Whether a call, chosen by a case, fails now. */
static bool fails(unsigned *left, int error)
{
    if (*left == 0)
        return false;
    (*left)--;
    play_now->failed_calls++;
    errno = error;
    return true;
}

static pid_t self(void)
{
    return running()->pid;
}

static pid_t parent(void)
{
    const struct play_process *above = running()->parent;

    return above != NULL ? above->pid : 1;
}

static void set_title(const char *role, const char *arguments)
{
    (void)role;
    (void)arguments;
}

static void read_clock(struct clock *clock)
{
    play_note_call();
    *clock = play_now->clock;
}

static NORETURN void exit_process(int code)
{
    play_process_exit(running(), (code & 0xff) << 8);
    abort();
}

/* Copies to a child beside descriptors. */
static struct play_process *copy_process(enum process_kind kind)
{
    struct play_process *from = running();
    struct play_process *child = play_process_create(play_now, from, kind);

    child->signals = from->signals;
    child->role = from->role;
    child->has_handlers = from->has_handlers;
    child->environment = play_copy_list(environ);
    return child;
}

static pid_t fork_child(enum process_kind kind, NORETURN void (*child)(void *arg), void *arg)
{
    struct play_process *process;

    play_note_call();
    if (fails(&play_now->failures.fork, EAGAIN))
        return -1;
    process = copy_process(kind);
    if (kind == PROCESS_WORKER && play_now->whole_workers) {
        play_whole_begin(process, arg);
        return process->pid;
    }
    if (kind == PROCESS_WORKER) {
        process->worker = play_worker_create(process, arg);
        if (play_now->forked != NULL)
            play_now->forked(play_now, process);
        return process->pid;
    }
    process->child = child;
    process->arg = arg;
    play_process_begin(process);
    return process->pid;
}

/* The heir goes on in the thread of the process before, and the process in a new thread. */
static pid_t fork_heir(void (*left)(void *arg, pid_t heir), void *arg)
{
    struct play_process *process = running(), *heir, *child;
    pid_t pid = process->pid;

    play_note_call();
    if (fails(&play_now->failures.fork, EAGAIN))
        return -1;
    heir = copy_process(PROCESS_BINARY);
    process->pid = heir->pid; /* the record stays the running thread's */
    heir->pid = pid;
    heir->parent = process->parent;
    process->parent = heir;
    heir->is_master = true;
    heir->left = left;
    heir->arg = arg;
    heir->kept = process->kept;
    heir->awaited = process->pid;
    memcpy(heir->pending, process->pending, sizeof(heir->pending));
    memset(process->pending, 0, sizeof(process->pending));
    process->alarm_ms = 0;
    TAILQ_FOREACH (child, &play_now->processes, link)
        if (child->parent == process && child != heir)
            child->parent = heir;
    play_process_begin(heir);
    return 0;
}

static int execute(const char *path, char *const arguments[], char *const environment[])
{
    struct play_process *process = running();

    (void)path;
    (void)arguments;
    if (fails(&play_now->failures.execute, ENOENT))
        return -1;
    play_close_on_exec();
    environ = play_copy_list(environment);
    process->has_handlers = false;
    process->alarm_ms = 0;
    process->wakeups = -1;
    process->is_master = true;
    role_set(ROLE_N);
    play_process_exit(process, play_image(process) << 8);
    return 0;
}

static pid_t find_exited(void)
{
    const struct play_process *process, *me = running();

    play_note_call();
    TAILQ_FOREACH (process, &play_now->processes, link)
        if (process->parent == me && process->exited)
            return process->pid;
    return 0;
}

static pid_t reap(pid_t pid, int *status, bool wait)
{
    struct play_process *me = running(), *process = play_find(play_now, pid);

    play_note_call();
    if (process == NULL || process->parent != me) {
        errno = ECHILD;
        return -1;
    }
    while (wait && !process->exited) {
        me->wait = PLAY_AWAITS_PROCESS;
        me->awaited = pid;
        me->until_ms = UINT64_MAX;
        play_process_yield(me);
        me->wait = PLAY_RUNNABLE;
    }
    if (!process->exited)
        return 0;
    if (status != NULL)
        *status = process->status;
    process->parent = NULL; /* the test forgets the process, and may join the thread */
    return pid;
}

static int kill_process(pid_t pid, int number)
{
    struct play_process *process = play_find(play_now, pid);

    play_note_call();
    if (process == NULL || (process->exited && process->parent == NULL)) {
        errno = ESRCH;
        return -1;
    }
    if (number != 0)
        play_process_signal(process, number, running()->pid);
    return 0;
}

static int handle_open(pid_t pid)
{
    if (fails(&play_now->failures.handle_open, EMFILE))
        return -1;
    return kill_process(pid, 0) == 0 ? (int)pid : -1;
}

static void handle_close(int handle)
{
    test_require(handle >= PLAY_FIRST_PID);
}

static bool handle_has_ended(int handle)
{
    const struct play_process *process = play_find(play_now, handle);

    return process == NULL || process->exited;
}

static void handle_wait(int handle, int ms)
{
    struct play_process *me = running();

    me->wait = PLAY_AWAITS_PROCESS;
    me->awaited = handle;
    me->until_ms = play_now->clock.mono_ms + (uint64_t)ms;
    play_process_yield(me);
    me->wait = PLAY_RUNNABLE;
}

static bool read_stat(pid_t pid, struct proc_stat *stat)
{
    const struct play_process *process = play_find(play_now, pid);

    if (pid < PLAY_FIRST_PID)
        return os_proc_read(pid, stat);
    if (process == NULL || (process->exited && process->parent == NULL))
        return false;
    *stat = (struct proc_stat) {
        .state = process->exited    ? 'Z'
                 : process->stopped ? 'T'
                                    : 'S',
        .parent = process->parent != NULL ? process->parent->pid : 1,
        .started = (uint64_t)process->pid, /* no number is used twice */
    };
    return true;
}

static bool is_stopped(pid_t child)
{
    struct proc_stat stat;

    return read_stat(child, &stat) && stat.state == 'T';
}

static void read_usage(pid_t pid, struct proc_usage *usage)
{
    (void)pid;
    *usage = (struct proc_usage) { -1, -1, -1, -1 };
}

static bool runs(pid_t pid)
{
    struct proc_stat stat;

    return read_stat(pid, &stat) && stat.state != 'Z';
}

static void reset_handlers(void)
{
    running()->has_handlers = false;
}

static void install_handlers(enum role role)
{
    (void)role;
    running()->has_handlers = true;
}

static void admit_signals(void)
{
    play_process_admit(running());
}

static int find_pending(sigset_t *pending)
{
    sigemptyset(pending);
    for (int number = 1; number < NSIG; number++)
        if (running()->pending[number] != 0)
            sigaddset(pending, number);
    return 0;
}

static int raise_signal(int number)
{
    struct play_process *me = running();

    play_process_signal(me, number, me->pid);
    return 0;
}

/* Waits until signals have been delivered, or the time has come. */
static void wait_for_signals(enum play_wait wait, uint64_t until_ms)
{
    struct play_process *me = running();

    me->wait = wait;
    me->until_ms = until_ms;
    do
        play_process_yield(me);
    while (!play_process_admit(me) && play_now->clock.mono_ms < until_ms);
    me->wait = PLAY_RUNNABLE;
}

static void pause_for(int ms)
{
    struct play_process *me = running();

    if (!play_process_admit(me))
        wait_for_signals(PLAY_PAUSES, play_now->clock.mono_ms + (uint64_t)ms);
}

static void set_alarm(int ms)
{
    running()->alarm_ms = ms == -1 ? 0 : play_now->clock.mono_ms + (uint64_t)ms;
}

static int wakeup_begin_play(void)
{
    struct play_process *me = running();

    if (me->wakeups != -1)
        return 0;
    me->wakeups = epoll_create1(EPOLL_CLOEXEC);
    test_require(me->wakeups != -1);
    play_process_pass(me, PLAY_PASSES_WAKEUPS, &me->wakeups, 1);
    return 0;
}

static int wakeup_add_play(int fd)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
    int wakeups;

    if (fails(&play_now->failures.wakeup_add, ENOMEM))
        return -1;
    wakeup_begin_play(); /* descriptors may be added before, as in the daemon */
    wakeups = running()->wakeups;
    if (epoll_ctl(wakeups, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return errno == EEXIST ? epoll_ctl(wakeups, EPOLL_CTL_MOD, fd, &event) : -1;
}

static void wakeup_expect_play(int fd, enum wakeup_event event)
{
    (void)fd;
    (void)event;
}

static void wakeup_remove_play(int fd)
{
    (void)fd;
}

static void wakeup_sleep_play(void)
{
    struct play_process *me = running();

    if (play_was_woken(me->wakeups))
        play_process_signal(me, SIGIO, SIGNALS_BY_KERNEL);
    if (!play_process_admit(me))
        wait_for_signals(PLAY_SLEEPS, UINT64_MAX);
}

const struct process_ops play_ops = {
    .checked = true,
    .self = self,
    .parent = parent,
    .set_title = set_title,
    .read_clock = read_clock,
    .exit = exit_process,
    .fork = fork_child,
    .fork_heir = fork_heir,
    .execute = execute,
    .find_exited = find_exited,
    .reap = reap,
    .kill = kill_process,
    .handle_open = handle_open,
    .handle_close = handle_close,
    .handle_has_ended = handle_has_ended,
    .handle_signal = kill_process,
    .handle_wait = handle_wait,
    .proc_read = read_stat,
    .proc_is_stopped = is_stopped,
    .proc_usage = read_usage,
    .proc_runs = runs,
    .reset_handlers = reset_handlers,
    .install_handlers = install_handlers,
    .admit_signals = admit_signals,
    .find_pending = find_pending,
    .raise = raise_signal,
    .pause = pause_for,
    .set_alarm = set_alarm,
    .wakeup_begin = wakeup_begin_play,
    .wakeup_add = wakeup_add_play,
    .wakeup_expect = wakeup_expect_play,
    .wakeup_remove = wakeup_remove_play,
    .wakeup_sleep = wakeup_sleep_play,
};

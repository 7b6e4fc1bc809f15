/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of a play: a thread waits for its turn, and has the turn alone. State private to a
 * process in the daemon (signal flags, role, environment, the service manager's queue) is exchanged
 * with the turn. */
#include "plays/play_private.h"

#include "plays/manager.h"
#include "plays/whole.h"
#include "plays/worker.h"
#include "process/role.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (1024 * 1024)
#define FDS_MAX 64

struct play *play_now;

struct play_process *play_process_create(
    struct play *play, struct play_process *parent, enum process_kind kind)
{
    struct play_process *process = calloc(1, sizeof(*process));

    test_require(process != NULL);
    process->play = play;
    process->pid = ++play->last_pid;
    process->parent = parent;
    process->kind = kind;
    process->started_ms = play->clock.mono_ms;
    process->wakeups = process->wakeups_seen = -1;
    process->role = ROLE_N;
    process->signals.wake_fd = -1;
    process->notify = (struct notify)NOTIFY_INITIAL;
    test_require(sem_init(&process->turn, 0, 0) == 0);
    test_require(sem_init(&process->begun, 0, 0) == 0);
    TAILQ_INSERT_TAIL(&play->processes, process, link);
    return process;
}

static void wait_for(sem_t *turn)
{
    while (sem_wait(turn) == -1)
        test_require(errno == EINTR);
}

static void give_turn_back(struct play_process *from);

/* Ends the thread: the kernel would close the descriptors a little after the visible end. */
static NORETURN void end_thread(struct play_process *process)
{
    syscall(SYS_close_range, 0u, ~0u, 0u);
    process->ended = true;
    give_turn_back(process);
    longjmp(process->end, 1);
}

void play_process_yield(struct play_process *process)
{
    test_require(process->play->running == process);
    give_turn_back(process);
    wait_for(&process->turn);
    if (process->doomed)
        end_thread(process);
}

static void *run_thread(void *arg)
{
    struct play_process *process = arg;

    test_require(unshare(CLONE_FILES | CLONE_FS) == 0);
    process->thread_id = gettid();
    if (process->child == NULL && process->left == NULL) {
        if (process->play->manager != NULL)
            play_manager_pass(process->play->manager);
        play_close_on_exec(); /* the test's own descriptors */
        process->inherited = play_count_descriptors(process);
    }
    sem_post(&process->begun);
    wait_for(&process->turn);
    if (setjmp(process->end) != 0)
        return NULL;
    if (process->doomed)
        end_thread(process);
    if (process->left != NULL) {
        process->left(process->arg, process->awaited);
        ck_abort_msg("an heir has failed");
    }
    if (process->child != NULL)
        process->child(process->arg);
    play_process_exit(process, play_image(process) << 8);
    abort();
}

void play_process_begin(struct play_process *process)
{
    pthread_attr_t attributes;

    test_require(pthread_attr_init(&attributes) == 0);
    test_require(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    test_require(pthread_create(&process->thread, &attributes, run_thread, process) == 0);
    pthread_attr_destroy(&attributes);
    process->has_thread = true;
    wait_for(&process->begun);
}

char **play_copy_list(char *const *list)
{
    size_t n = 0;
    char **copy;

    while (list != NULL && list[n] != NULL)
        n++;
    copy = calloc(n + 1, sizeof(*copy));
    test_require(copy != NULL);
    for (size_t i = 0; i < n; i++)
        copy[i] = list[i];
    return copy;
}

static void enter(struct play_process *process)
{
    environ = process->environment;
    signals_state = &process->signals;
    role_set(process->role);
    notify_state = &process->notify;
    process->play->running = process;
}

static void leave(struct play_process *process)
{
    struct play *play = process->play;

    play->running = NULL;
    notify_state = play->notify;
    process->role = role_set(ROLE_N);
    signals_state = play->signals;
    if (environ != process->environment) {
        char **copy = play_copy_list(environ);

        free(process->environment);
        process->environment = copy;
    }
    environ = play->environment;
}

/* Lets the test run. */
static void give_turn_back(struct play_process *from)
{
    leave(from);
    sem_post(&from->play->turn);
}

/* Receives the descriptors passed by processes, and hands them to the receivers. */
static void receive_passed(struct play *play)
{
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct play_passed passed;
    struct iovec iov = { &passed, sizeof(passed) };
    struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

    for (;;) {
        struct play_process *process;
        struct cmsghdr *header;
        int fds[FDS_MAX];
        unsigned n = 0;

        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        if (recvmsg(play->passing[0], &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == -1)
            return;
        header = CMSG_FIRSTHDR(&message);
        if (header != NULL) {
            n = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            memcpy(fds, CMSG_DATA(header), n * sizeof(int));
        }
        process = play_find(play, passed.pid);
        test_require(process != NULL);
        if (passed.what == PLAY_PASSES_WORKER) {
            play_worker_take(process->worker, fds, n);
        } else if (passed.what == PLAY_PASSES_LISTENER) {
            play_watch_take(play, fds[0]);
        } else {
            if (process->wakeups_seen != -1)
                close(process->wakeups_seen);
            process->wakeups_seen = fds[0];
        }
    }
}

void play_process_pass(const struct play_process *process, int what, const int *fds, unsigned n)
{
    struct play_passed passed = { .pid = process->pid, .what = what };
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = { .bytes = "" };
    struct iovec iov = { &passed, sizeof(passed) };
    struct msghdr message = { .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    test_require(n > 0 && n <= FDS_MAX);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(header), fds, n * sizeof(int));
    test_require(sendmsg(process->play->passing[1], &message, 0) != -1);
}

void play_process_run(struct play_process *process)
{
    struct play *play = process->play;

    test_require(play->running == NULL);
    if (process->pending[SIGKILL] != 0 && !process->exited) {
        play_process_exit(process, (int)process->pending[SIGKILL]);
        return;
    }
    if (process->worker != NULL) {
        play_worker_run(process->worker);
        return;
    }
    enter(process);
    sem_post(&process->turn);
    wait_for(&play->turn);
    receive_passed(play);
    if (process->whole != NULL)
        play_network_settle(play);
}

/* Ends the thread of a process, and waits for the end. */
static void join(struct play_process *process)
{
    if (!process->has_thread)
        return;
    if (!process->ended) {
        process->doomed = true;
        enter(process);
        sem_post(&process->turn);
        wait_for(&process->play->turn);
    }
    pthread_join(process->thread, NULL);
    process->has_thread = false;
}

void play_process_forget(struct play_process *process)
{
    struct play *play = process->play;

    test_require(process->exited);
    join(process);
    if (process->wakeups_seen != -1)
        close(process->wakeups_seen);
    if (process->worker != NULL)
        play_worker_destroy(&process->worker);
    if (process->whole != NULL)
        play_whole_destroy(&process->whole);
    notify_state = &process->notify;
    notify_forget();
    notify_state = play->notify;
    free(process->environment);
    sem_destroy(&process->turn);
    sem_destroy(&process->begun);
    TAILQ_REMOVE(&play->processes, process, link);
    free(process);
}

/* Gives the children of an exiting process to the nearest adopter of orphans: the master process
 * above, else the init process. */
static void leave_children(struct play_process *process)
{
    struct play_process *child, *next, *heir = process->parent;

    while (heir != NULL && (!heir->is_master || heir->exited))
        heir = heir->parent;
    TAILQ_FOREACH_SAFE (child, &process->play->processes, link, next)
        if (child->parent == process) {
            if (child->kind == PROCESS_CHECK)
                play_process_signal(child, SIGKILL, SIGNALS_BY_KERNEL);
            child->parent = heir;
            if (heir != NULL && child->exited)
                play_process_signal(heir, SIGCHLD, SIGNALS_BY_KERNEL);
        }
}

void play_process_exit(struct play_process *process, int status)
{
    struct play *play = process->play;

    test_require(!process->exited);
    process->exited = true;
    process->status = status;
    play->killed_masters += process->is_master && WIFSIGNALED(status);
    process->alarm_ms = 0;
    play_watch_remove_all(process);
    leave_children(process);
    if (process->worker != NULL)
        play_worker_close(process->worker);
    if (process->parent != NULL)
        play_process_signal(process->parent, SIGCHLD, SIGNALS_BY_KERNEL);
    if (play->running == process) {
        play_worker_forget_memory(play, process->thread_id);
        end_thread(process);
    }
    test_require(play->running == NULL);
    join(process); /* the descriptors are closed at once */
}

/* Whether a process without a handler ignores the signal. */
static bool is_ignored(int number)
{
    return number == SIGCHLD || number == SIGWINCH || number == SIGCONT || number == SIGPIPE ||
           number == SIGURG || number == SIGIO;
}

/* Whether a process with handlers has none for the signal, and so ends. */
static bool is_fatal(const struct play_process *process, int number)
{
    return process->whole != NULL && (number == SIGABRT || number == SIGSEGV);
}

void play_process_signal(struct play_process *process, int number, pid_t sender)
{
    test_require(number > 0 && number < NSIG && sender != 0);
    if (process->exited)
        return;
    if (number == SIGSTOP)
        process->stopped = true;
    if (number == SIGCONT)
        process->stopped = false;
    if (number == SIGSTOP || number == SIGCONT)
        return;
    if (process->worker != NULL)
        play_worker_note_signal(process->worker, number, sender);
    if (number == SIGKILL || is_fatal(process, number) ||
        (!process->has_handlers && !is_ignored(number))) {
        process->pending[SIGKILL] = number; /* the process ends when it runs next */
        process->stopped = false;
    } else if (process->has_handlers && process->pending[number] == 0) {
        process->pending[number] = sender;
    }
}

/* Whether the signal has a command in the role; else ignored. */
static bool has_command(int role, int number)
{
    for (const struct signal_row *s = signals_table; s->number != 0; s++)
        if (s->number == number && !s->alias)
            return s->commands[role] != COMMAND_NONE;
    return false;
}

bool play_process_admit(struct play_process *process)
{
    bool any = false;

    for (int number = 1; number < NSIG; number++) {
        pid_t sender = process->pending[number];

        if (sender == 0 || number == SIGKILL)
            continue;
        process->pending[number] = 0;
        if (has_command(process->signals.role, number)) {
            signals_deliver(number, sender);
            any = true;
        }
    }
    return any;
}

bool play_was_woken(int wakeups)
{
    struct epoll_event events[16];
    bool any = false;

    while (wakeups != -1 && epoll_wait(wakeups, events, 16, 0) > 0)
        any = true;
    return any;
}

bool play_is_readable(int epoll)
{
    struct pollfd one = { .fd = epoll, .events = POLLIN };

    return epoll != -1 && poll(&one, 1, 0) > 0;
}

static bool has_pending(const struct play_process *process)
{
    for (int number = 1; number < NSIG; number++)
        if (process->pending[number] != 0 && number != SIGKILL &&
            has_command(process->signals.role, number))
            return true;
    return false;
}

static bool has_exited(const struct play *play, pid_t pid)
{
    const struct play_process *process = play_find(play, pid);

    return process == NULL || process->exited;
}

bool play_process_is_runnable(struct play_process *process)
{
    struct play *play = process->play;

    if (process->exited || process->stopped)
        return false;
    if (process->pending[SIGKILL] != 0)
        return true;
    if (process->worker != NULL)
        return play_worker_is_runnable(process->worker);
    if (process->alarm_ms != 0 && process->alarm_ms <= play->clock.mono_ms) {
        process->alarm_ms = 0;
        play_process_signal(process, SIGALRM, SIGNALS_BY_KERNEL);
    }
    if (process->whole != NULL && play_whole_is_woken(process))
        return true;
    if (process->whole == NULL && process->has_handlers && play_was_woken(process->wakeups_seen))
        play_process_signal(process, SIGIO, SIGNALS_BY_KERNEL);
    switch (process->wait) {
    case PLAY_RUNNABLE:
        return true;
    case PLAY_SLEEPS:
        return has_pending(process);
    case PLAY_PAUSES:
        return has_pending(process) || process->until_ms <= play->clock.mono_ms;
    case PLAY_AWAITS_PROCESS:
        return has_exited(play, process->awaited) || process->until_ms <= play->clock.mono_ms;
    }
    return false;
}

uint64_t play_process_deadline(const struct play_process *process)
{
    uint64_t deadline = process->alarm_ms;

    if (process->exited || process->stopped)
        return 0;
    if (process->worker != NULL)
        return play_worker_deadline(process->worker);
    if ((process->wait == PLAY_PAUSES || process->wait == PLAY_AWAITS_PROCESS) &&
        (deadline == 0 || process->until_ms < deadline))
        deadline = process->until_ms;
    return deadline;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the scripts of workers, a step at a time. */
#include "plays/worker.h"

#include "channel/channel.h"
#include "plays/play_private.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SESSIONS_MAX 256

struct play_worker *play_worker_create(
    struct play_process *process, const struct heritage *heritage)
{
    struct play_worker *worker = calloc(1, sizeof(*worker));
    const struct listener *listener;
    int fds[64];
    unsigned n = 0;

    test_require(worker != NULL);
    *worker = (struct play_worker) {
        .process = process,
        .shared = heritage->shared,
        .tid = process->parent->thread_id,
        .slot = heritage->slot,
        .index = heritage->index,
        .place = heritage->place,
        .cycle = heritage->cycle,
        .shutdown_timeout = heritage->cycle->core.worker_shutdown_timeout,
        .channel = -1,
        .link = -1,
        .file = -1,
    };
    fds[n++] = heritage->channel;
    if (heritage->task == TASK_SERVE)
        STAILQ_FOREACH (listener, &heritage->cycle->stream.listeners.list, link)
            for (unsigned i = 0; i < listener->fd_n && n < 64; i++)
                fds[n++] = listener->fds[i];
    play_process_pass(process, PLAY_PASSES_WORKER, fds, n);
    return worker;
}

void play_worker_take(struct play_worker *worker, const int *fds, unsigned n)
{
    test_require(n > 0);
    worker->channel = fds[0];
    worker->listener_n = n - 1;
    worker->listeners = calloc(n, sizeof(int));
    worker->sessions = calloc(SESSIONS_MAX, sizeof(int));
    test_require(worker->listeners != NULL && worker->sessions != NULL);
    memcpy(worker->listeners, fds + 1, (n - 1) * sizeof(int));
    worker->ready_ms = worker->process->play->clock.mono_ms + worker->start_ms;
    if (worker->process->exited)
        play_worker_close(worker);
}

static void close_listeners(struct play_worker *worker)
{
    for (unsigned i = 0; i < worker->listener_n; i++)
        close(worker->listeners[i]);
    worker->listener_n = 0;
}

/* Replaces a descriptor. */
static void keep_fd(int *kept, int fd)
{
    if (*kept != -1)
        close(*kept);
    *kept = fd;
}

void play_worker_close(struct play_worker *worker)
{
    close_listeners(worker);
    for (unsigned i = 0; i < worker->session_n; i++)
        close(worker->sessions[i]);
    worker->session_n = 0;
    keep_fd(&worker->channel, -1);
    keep_fd(&worker->link, -1);
    keep_fd(&worker->file, -1);
}

void play_worker_destroy(struct play_worker **worker)
{
    free((*worker)->listeners);
    free((*worker)->sessions);
    free(*worker);
    *worker = NULL;
}

/* The slot of a worker whose master has unmapped the memory is nobody's: the kernel would have left
 * the worker a separate mapping. */
static struct slot *slot_of(const struct play_worker *worker)
{
    static struct slot unmapped;

    return worker->shared != NULL ? shared_slot(worker->shared, worker->slot) : &unmapped;
}

void play_worker_forget_memory(const struct play *play, pid_t tid)
{
    struct play_process *process;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL && process->worker->tid == tid)
            process->worker->shared = NULL;
}

static struct heartbeat *heartbeat_of(const struct play_worker *worker)
{
    return &slot_of(worker)->heartbeat;
}

static void note_sessions(const struct play_worker *worker)
{
    atomic_store(&slot_of(worker)->counters.n[COUNTER_ACTIVE], worker->session_n);
}

void play_worker_end(struct play_worker *worker, enum heartbeat_end end, int code)
{
    if (end != HEARTBEAT_LIVES)
        heartbeat_set_end(heartbeat_of(worker), end, 0);
    play_process_exit(worker->process, code << 8);
}

void play_worker_exit(struct play_worker *worker, int code)
{
    play_worker_end(worker, HEARTBEAT_RETURNED, code);
}

void play_worker_crash(struct play_worker *worker, int number)
{
    play_process_exit(worker->process, number);
}

void play_worker_stick(struct play_worker *worker)
{
    heartbeat_begin(heartbeat_of(worker), CALLBACK_DATA, 0);
    worker->stuck = true;
}

void play_worker_close_channel(struct play_worker *worker)
{
    if (worker->channel != -1)
        close(worker->channel);
    worker->channel = -1;
}

void play_worker_send(struct play_worker *worker, uint32_t kind, uint32_t argument)
{
    struct channel_message message = { .kind = kind, .argument = argument, .fd = -1 };

    if (worker->channel != -1)
        channel_send(worker->channel, &message); /* a full channel loses it */
}

/* Accepts a client, if any waits; false: none. */
static bool accept_client(struct play_worker *worker)
{
    for (unsigned i = 0; i < worker->listener_n && worker->session_n < SESSIONS_MAX; i++) {
        int fd = accept4(worker->listeners[i], NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd == -1)
            continue;
        worker->sessions[worker->session_n++] = fd;
        note_sessions(worker);
        return true;
    }
    return false;
}

/* Echoes, and closes sessions whose clients have ended; false: nothing has come. */
static bool serve_sessions(struct play_worker *worker)
{
    bool any = false;

    for (unsigned i = 0; i < worker->session_n; i++) {
        char bytes[64];
        ssize_t n = recv(worker->sessions[i], bytes, sizeof(bytes), 0);

        if (n == -1 && errno == EAGAIN)
            continue;
        any = true;
        if (n > 0 && send(worker->sessions[i], bytes, (size_t)n, MSG_NOSIGNAL) == n)
            continue;
        close(worker->sessions[i]);
        worker->sessions[i--] = worker->sessions[--worker->session_n];
        note_sessions(worker);
    }
    return any;
}

static void drain(struct play_worker *worker)
{
    if (worker->phase == PLAY_WORKER_DRAINS)
        return;
    while (worker->phase == PLAY_WORKER_ACCEPTS && accept_client(worker))
        continue;
    close_listeners(worker);
    worker->phase = PLAY_WORKER_DRAINS;
    if (worker->shutdown_timeout > 0)
        worker->shutdown_ms =
            worker->process->play->clock.mono_ms + (uint64_t)worker->shutdown_timeout;
    play_worker_send(worker, MESSAGE_RELEASED, 0);
}

void play_worker_recover(struct play_worker *worker)
{
    const struct play_process *master = worker->process->parent;

    if (worker->stuck)
        heartbeat_begin_wait(heartbeat_of(worker));
    worker->never_ready = worker->never_accepts = worker->deaf = worker->stuck = false;
    if (worker->channel == -1 && (master == NULL || master->pending[SIGKILL] != 0))
        drain(worker); /* no event beside reports the end of the master */
    worker->keeps_sessions = worker->fails_start = worker->crashes_accepting = false;
}

static void handle_message(struct play_worker *worker, const struct channel_message *message)
{
    test_require(message->kind < countof(worker->received));
    worker->received[message->kind]++;
    worker->arguments[message->kind] = message->argument;
    if (message->kind == MESSAGE_ACCEPT && !worker->never_accepts) {
        if (worker->phase == PLAY_WORKER_READY)
            worker->phase = PLAY_WORKER_ACCEPTS;
        play_worker_send(worker, MESSAGE_ACCEPTING, 0);
    }
    if (message->kind == MESSAGE_LISTENER && worker->listener_n > 0) {
        close(worker->listeners[0]);
        worker->listeners[0] = message->fd;
        return;
    }
    if (message->kind == MESSAGE_LINK || message->kind == MESSAGE_FILE)
        keep_fd(message->kind == MESSAGE_LINK ? &worker->link : &worker->file, message->fd);
    else if (message->fd != -1)
        close(message->fd);
}

static bool is_deaf(const struct play_worker *worker)
{
    return worker->deaf || worker->stuck;
}

/* Obeys a pending signal; false: none is pending. */
static bool take_signal(struct play_worker *worker)
{
    pid_t *pending = worker->process->pending;
    static const int ends[] = { SIGABRT, SIGSEGV, SIGTERM, SIGINT };

    for (size_t i = 0; i < countof(ends); i++)
        if (pending[ends[i]] != 0 && (i < 2 || !is_deaf(worker))) {
            pending[ends[i]] = 0;
            if (i == 0 && worker->ignores_abort)
                return true;
            if (i < 2)
                play_worker_crash(worker, ends[i]);
            else
                play_worker_exit(worker, 0);
            return true;
        }
    if (pending[SIGQUIT] == 0 || is_deaf(worker) || worker->phase == PLAY_WORKER_STARTS)
        return false;
    pending[SIGQUIT] = 0;
    drain(worker);
    return true;
}

static bool has_signal(const struct play_worker *worker)
{
    const pid_t *pending = worker->process->pending;

    if (pending[SIGABRT] != 0 || pending[SIGSEGV] != 0)
        return true;
    return !is_deaf(worker) && (pending[SIGTERM] != 0 || pending[SIGINT] != 0 ||
                                   (pending[SIGQUIT] != 0 && worker->phase != PLAY_WORKER_STARTS));
}

static bool has_started(const struct play_worker *worker)
{
    return !worker->never_ready && worker->ready_ms <= worker->process->play->clock.mono_ms;
}

/* Whether a descriptor of the worker is readable; a shut down listener is not. */
static bool has_input(const struct play_worker *worker)
{
    struct pollfd list[1 + 64 + SESSIONS_MAX];
    unsigned n = 0;

    list[n++] = (struct pollfd) { .fd = worker->channel, .events = POLLIN };
    for (unsigned i = 0; worker->phase == PLAY_WORKER_ACCEPTS && i < worker->listener_n; i++)
        list[n++] = (struct pollfd) { .fd = worker->listeners[i], .events = POLLIN };
    for (unsigned i = 0; i < worker->session_n; i++)
        list[n++] = (struct pollfd) { .fd = worker->sessions[i], .events = POLLIN };
    poll(list, n, 0);
    for (unsigned i = 0; i < n; i++) {
        bool is_listener = i > 0 && i <= worker->listener_n && worker->phase == PLAY_WORKER_ACCEPTS;

        if (list[i].revents != 0 && !(is_listener && (list[i].revents & POLLHUP) != 0))
            return true;
    }
    return false;
}

void play_worker_note_signal(struct play_worker *worker, int number, pid_t sender)
{
    bool by_master = worker->process->parent != NULL && sender == worker->process->parent->pid;

    if (by_master && (number == SIGKILL || number == SIGABRT) && !worker->disturbed)
        worker->wronged = true;
}

/* Whether worker_shutdown_timeout has passed since it drains. */
static bool is_late(const struct play_worker *worker)
{
    return worker->shutdown_ms != 0 && worker->shutdown_ms <= worker->process->play->clock.mono_ms;
}

bool play_worker_is_runnable(struct play_worker *worker)
{
    if (has_signal(worker))
        return true;
    if (is_deaf(worker))
        return false;
    if (worker->phase == PLAY_WORKER_STARTS)
        return has_started(worker);
    if (worker->phase == PLAY_WORKER_DRAINS && !worker->keeps_sessions &&
        (worker->session_n == 0 || is_late(worker)))
        return true;
    return has_input(worker);
}

uint64_t play_worker_deadline(const struct play_worker *worker)
{
    bool waits = worker->phase == PLAY_WORKER_STARTS && !worker->never_ready && !is_deaf(worker);

    return waits ? worker->ready_ms : worker->shutdown_ms;
}

/* The first step, with the possible failures of a start. */
static void start(struct play_worker *worker)
{
    if (worker->fails_start) {
        play_worker_exit(worker, 1);
        return;
    }
    heartbeat_start(heartbeat_of(worker), 0);
    heartbeat_begin_wait(heartbeat_of(worker));
    worker->phase = PLAY_WORKER_READY;
    play_worker_send(worker, MESSAGE_READY, 0);
}

void play_worker_run(struct play_worker *worker)
{
    struct channel_message message;

    if (take_signal(worker))
        return;
    if (is_deaf(worker))
        return;
    if (worker->phase == PLAY_WORKER_STARTS) {
        if (has_started(worker))
            start(worker);
        return;
    }
    switch (worker->channel != -1 ? channel_receive(worker->channel, &message) : CHANNEL_AGAIN) {
    case CHANNEL_DONE:
        handle_message(worker, &message);
        if (worker->phase == PLAY_WORKER_ACCEPTS && worker->crashes_accepting)
            play_worker_crash(worker, SIGSEGV);
        return;
    case CHANNEL_AGAIN:
        break;
    case CHANNEL_CLOSED: /* the master has gone */
    case CHANNEL_BROKEN:
        close(worker->channel);
        worker->channel = -1;
        drain(worker);
        return;
    }
    if (worker->phase == PLAY_WORKER_ACCEPTS && accept_client(worker))
        return;
    if (serve_sessions(worker))
        return;
    if (worker->phase == PLAY_WORKER_DRAINS && !worker->keeps_sessions &&
        (worker->session_n == 0 || is_late(worker)))
        play_worker_exit(worker, 0);
}

struct play_worker *play_worker_find(const struct play *play, unsigned index)
{
    struct play_process *process;
    struct play_worker *found = NULL;

    TAILQ_FOREACH (process, &play->processes, link)
        if (process->worker != NULL && !process->exited && process->worker->index == index)
            found = process->worker;
    return found;
}

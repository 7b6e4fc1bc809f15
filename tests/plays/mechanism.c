/* SPDX-License-Identifier: BSD-2-Clause */
/* The event mechanism of whole workers: epoll's own, except that a wait gives the turn back to the
 * play, time is the play's, and exclusive watches are in exclusive.c. */
#include "plays/play_private.h"
#include "plays/whole.h"

#include "event/loop.h"

/* The posix flavour compiles epoll.c for plays alone. */
extern const struct mechanism mechanism_epoll;

/* Average number of calls until further processes run first. */
#define ACCEPTS_A_PAUSE 4
#define CALLS_A_PAUSE 16

static struct play_process *running(void)
{
    struct play_process *process = play_now->running;

    test_require(process != NULL && process->whole != NULL);
    return process;
}

static void pause_at_random(uint32_t calls)
{
    if (random_below(&play_now->state, calls) == 0)
        play_process_yield(running());
}

static int init(struct loop *loop, const int64_t *options)
{
    struct play_process *process = running();

    if (mechanism_epoll.init(loop, options) == -1)
        return -1;
    process->wakeups = loop->mechanism_fd;
    play_process_pass(process, PLAY_PASSES_WAKEUPS, &process->wakeups, 1);
    return 0;
}

static int add_listener(struct loop *loop, struct source *source, bool exclusive)
{
    if (!exclusive)
        return mechanism_epoll.add_listener(loop, source, false);
    source->position = 1;
    play_watch_add(running(), source);
    return 0;
}

static int del_listener(struct loop *loop, struct source *source)
{
    if (source->position == 0)
        return mechanism_epoll.del_listener(loop, source);
    source->position = 0;
    play_watch_remove(running(), source);
    return 0;
}

static void report_listener(void *arg, struct source *source)
{
    loop_report(arg, source, EVENT_READ);
}

static bool has_event(struct play_process *process)
{
    return play_watch_has_event(process) || play_is_readable(process->wakeups);
}

/* Waits until an event or a signal has come, or until this moment; whether there are events. */
static bool wait_until(struct play_process *me, uint64_t until_ms)
{
    struct play_whole *whole = me->whole;
    bool any;

    while (
        !(any = has_event(me)) && !play_process_admit(me) && until_ms > play_now->clock.mono_ms) {
        me->wait = until_ms == UINT64_MAX ? PLAY_SLEEPS : PLAY_PAUSES;
        me->until_ms = until_ms;
        whole->waits = true;
        play_process_yield(me);
        whole->waits = whole->woken = false;
        me->wait = PLAY_RUNNABLE;
    }
    return any;
}

static void process_events(struct loop *loop, int timeout)
{
    struct play_process *me = running();
    uint64_t now = play_now->clock.mono_ms;

    pause_at_random(ACCEPTS_A_PAUSE);
    if (random_below(&play_now->state, 2) == 0 && play_process_admit(me))
        return; /* signals may come first, or last */
    if (!wait_until(me, timeout == -1 ? UINT64_MAX : now + (uint64_t)timeout))
        return;
    play_watch_report(me, report_listener, loop);
    mechanism_epoll.process_events(loop, 0);
}

static void read_clock(struct clock *clock)
{
    *clock = play_now->clock;
}

static struct io_result accept_client(
    struct source *listener, int *fd, struct sockaddr *address, socklen_t *length)
{
    struct io_result result;

    pause_at_random(ACCEPTS_A_PAUSE);
    result = io_socket.accept(listener, fd, address, length);
    if (result.status == IO_DONE && play_now->accepted != NULL)
        play_now->accepted(play_now, running(), address, *length);
    return result;
}

static struct io_result receive(struct source *source, struct io_span *span)
{
    pause_at_random(CALLS_A_PAUSE);
    return io_socket.recv(source, span);
}

static struct io_result send_bytes(struct source *source, const struct iovec *pieces, int n)
{
    pause_at_random(CALLS_A_PAUSE);
    return io_socket.send(source, pieces, n);
}

static void close_source(struct source *source, bool reset)
{
    pause_at_random(CALLS_A_PAUSE);
    io_socket.close(source, reset);
}

const struct mechanism *play_mechanism(bool exclusive)
{
    static struct mechanism mechanisms[2];
    static struct io_ops io;
    struct mechanism *mechanism = &mechanisms[exclusive];

    if (mechanism->self != NULL)
        return mechanism;
    io = io_socket;
    io.accept = accept_client;
    io.recv = receive;
    io.send = send_bytes;
    io.close = close_source;
    *mechanism = mechanism_epoll;
    mechanism->self = mechanism;
    mechanism->exclusive = exclusive;
    mechanism->name = "play";
    mechanism->io = &io;
    mechanism->init = init;
    mechanism->add_listener = add_listener;
    mechanism->del_listener = del_listener;
    mechanism->process_events = process_events;
    mechanism->read_clock = read_clock;
    return mechanism;
}

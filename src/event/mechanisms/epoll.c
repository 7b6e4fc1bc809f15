/* SPDX-License-Identifier: BSD-2-Clause */
/* epoll(7): connections edge-triggered, listeners level-triggered, exclusive where several workers
 * wait. The kernel's data of an event is the slot's index and generation. */
#include "event/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_EVENTS (EPOLLIN | EPOLLRDHUP)

/* Words of debug lines. */
static const struct debug_flag flag_words[] = {
    { EPOLLIN, "in" },
    { EPOLLOUT, "out" },
    { EPOLLRDHUP, "rdhup" },
    { EPOLLHUP, "hup" },
    { EPOLLERR, "err" },
    { EPOLLEXCLUSIVE, "exclusive" },
    { EPOLLET, "et" },
    { 0, NULL },
};
static const char *const operation_words[] = {
    [EPOLL_CTL_ADD] = "epoll_ctl() adds",
    [EPOLL_CTL_DEL] = "epoll_ctl() deletes",
    [EPOLL_CTL_MOD] = "epoll_ctl() modifies",
};

struct epoll_state {
    int events_n;
    bool haunted;              /* reports what nobody watches any more */
    struct epoll_event change; /* the latest that the kernel was told */
    struct epoll_event *events;
};

static int epoll_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

static int epoll_init(struct loop *loop, const int64_t *options)
{
    struct epoll_state *state = loop->mechanism_state;

    state->events_n = (int)options[0];
    state->events = malloc((size_t)options[0] * sizeof(*state->events));
    return state->events == NULL ? -1 : 0;
}

static void epoll_done(struct loop *loop)
{
    free(((struct epoll_state *)loop->mechanism_state)->events);
}

static int control_epoll(struct loop *loop, struct source *source, int operation, uint32_t events)
{
    struct epoll_state *state = loop->mechanism_state;
    uint64_t index = source_index(&loop->sources, source);

    assert(source->fd != -1 && source->in_use);
    debug_flags(loop, source, operation_words[operation], events, flag_words);
    state->change = (struct epoll_event) {
        .events = events,
        .data.u64 = (uint64_t)source->generation << 32 | index,
    };
    return epoll_ctl(loop->mechanism_fd, operation, source->fd, &state->change);
}

static uint32_t epoll_flags(const struct source *source, bool read, bool write)
{
    return (read ? READ_EVENTS : 0) | (write ? EPOLLOUT : 0) | (source->level ? 0 : EPOLLET);
}

static int epoll_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    bool other = source->events[!direction].active;

    return control_epoll(loop, source, other ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
        epoll_flags(source, other || direction == EVENT_READ, other || direction == EVENT_WRITE));
}

static int epoll_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    if (!source->events[!direction].active)
        return control_epoll(loop, source, EPOLL_CTL_DEL, 0);
    return control_epoll(loop, source, EPOLL_CTL_MOD,
        epoll_flags(source, direction != EVENT_READ, direction != EVENT_WRITE));
}

static int epoll_add_conn(struct loop *loop, struct source *source)
{
    return control_epoll(loop, source, EPOLL_CTL_ADD, epoll_flags(source, true, true));
}

static int epoll_del_conn(struct loop *loop, struct source *source, bool closing)
{
    assert(!closing);
    (void)closing;
    return control_epoll(loop, source, EPOLL_CTL_DEL, 0);
}

static uint32_t listener_events(bool exclusive)
{
    return EPOLLIN | (exclusive ? EPOLLEXCLUSIVE : 0);
}

static int epoll_add_listener(struct loop *loop, struct source *source, bool exclusive)
{
    source->position = exclusive; /* for renew_set() */
    return control_epoll(loop, source, EPOLL_CTL_ADD, listener_events(exclusive));
}

static int epoll_del_listener(struct loop *loop, struct source *source)
{
    return control_epoll(loop, source, EPOLL_CTL_DEL, 0);
}

/* Notes an end or an error; returns the events for the owner to find out by trying. */
static uint32_t note_epoll_end(struct loop *loop, struct source *source, uint32_t events)
{
    if (events & (EPOLLRDHUP | EPOLLHUP))
        source->eof = true;
    if (events & EPOLLERR)
        loop_report_broken(loop, source);
    if ((events & (EPOLLERR | EPOLLHUP)) && source->events[EVENT_WRITE].active)
        events |= EPOLLOUT;
    return events | EPOLLIN;
}

/* Fills a new set; false with errno. A source closed under us is left out. */
static bool fill_set(struct loop *loop)
{
    for (uint32_t i = 0; i < loop->sources.used_n; i++) {
        struct source *source = source_at(&loop->sources, i);
        bool read = source->events[EVENT_READ].active, write = source->events[EVENT_WRITE].active;
        uint32_t events = 0;

        if (!source->in_use || source->fd == -1)
            continue;
        if (source->listening)
            events = listener_events(source->position != 0);
        else if (read || write)
            events = epoll_flags(source, read, write);
        if (events != 0 && control_epoll(loop, source, EPOLL_CTL_ADD, events) == -1 &&
            errno != EBADF)
            return false;
    }
    return true;
}

/* Replaces a set with endless reports of closed files. A failure is retried at the next report. */
static COLD void renew_set(struct loop *loop)
{
    struct epoll_state *state = loop->mechanism_state;
    int old = loop->mechanism_fd, new = epoll_open();

    state->haunted = false;
    if (new == -1)
        return;
    debug_loop(loop, "epoll reports a descriptor after the close: a new set is made");
    loop->mechanism_fd = new;
    if (!fill_set(loop))
        loop->mechanism_fd = old;
    close(loop->mechanism_fd == old ? new : old);
}

static inline void report_epoll_event(struct loop *loop, const struct epoll_event *event)
{
    uint32_t events = event->events;
    struct source *source =
        loop_source(loop, (uint32_t)event->data.u64, (uint32_t)(event->data.u64 >> 32));

    if (unlikely(source == NULL)) {
        /* the descriptor was closed under the source, and another has the file: the kernel watches
         * on */
        ((struct epoll_state *)loop->mechanism_state)->haunted = true;
        return;
    }
    debug_flags(loop, source, "epoll reports", events, flag_words);
    if (unlikely(events & ~(uint32_t)(EPOLLIN | EPOLLOUT)))
        events = note_epoll_end(loop, source, events);
    if (events & EPOLLIN)
        loop_report(loop, source, EVENT_READ);
    if (events & EPOLLOUT)
        loop_report(loop, source, EVENT_WRITE);
}

static void epoll_process_events(struct loop *loop, int timeout)
{
    struct epoll_state *state = loop->mechanism_state;
    struct epoll_event *events = state->events;
    int n = epoll_pwait(loop->mechanism_fd, events, state->events_n, timeout, loop->wait_mask);

    if (n <= 0)
        loop_check_wait(loop, "epoll_pwait", n, timeout);
    for (const struct epoll_event *event = events; n > 0; event++, n--)
        report_epoll_event(loop, event);
    if (unlikely(state->haunted))
        renew_set(loop);
}

const struct mechanism mechanism_epoll = {
    .name = "epoll",
    .masks = true,
    .edge = true,
    .exclusive = true,
    .forgets = true,
    .ends_by_close = true, /* no other process has a connection's descriptor */
    .tells_broken = true,
    .tells_refused = true,
    .options = { { .name = "epoll_events", .least = 1, .greatest = 65536, .initial = 512 } },
    .io = &io_socket,
    .state_size = sizeof(struct epoll_state),
    .open = epoll_open,
    .init = epoll_init,
    .done = epoll_done,
    .add = epoll_add,
    .del = epoll_del,
    .add_conn = epoll_add_conn,
    .del_conn = epoll_del_conn,
    .add_listener = epoll_add_listener,
    .del_listener = epoll_del_listener,
    .notify = loop_notify_descriptor,
    .process_events = epoll_process_events,
};

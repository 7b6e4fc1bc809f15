/* SPDX-License-Identifier: BSD-2-Clause */
/* kqueue(2) as FreeBSD's manual has it: connections by edges (EV_CLEAR), listeners by levels.
 * Changes go to the kernel with the next wait or when the list is full. Closing a descriptor
 * removes the filters; listed changes are dropped before, lest a reused number gets them. */
#include "event/loop.h"
#include "event/mechanisms/kqueue_told.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/event.h>

/* Changes sent at once without a wait. */
#define RECEIPTS_MAX 32

/* A source's position combines the positions of the two latest changes, from 1 on; 0: none. */
#define POSITION_BITS 16
#define POSITION_MAX 32768

/* The kernel's data of an event is the slot's index, with as much of the generation as fits. */
#define INDEX_BITS (sizeof(uintptr_t) > 4 ? 32 : 24)
#define INDEX_MASK (((uintptr_t)1 << (INDEX_BITS - 1) << 1) - 1)

#ifndef EV_RECEIPT
#define EV_RECEIPT 0 /* events come with the errors then */
#endif

/* Words of debug lines. */
static const struct debug_flag change_words[] = {
    { EV_ADD, "add" },
    { EV_DELETE, "delete" },
    { EV_ENABLE, "enable" },
    { EV_DISABLE, "disable" },
    { EV_CLEAR, "clear" },
    { 0, NULL },
};
static const char *const filter_words[] = {
    [EVENT_READ] = "kqueue changes the read filter:",
    [EVENT_WRITE] = "kqueue changes the write filter:",
};

/* A pointer; in NetBSD before 10 a number. */
typedef __typeof__(((struct kevent *)NULL)->udata) user_data;

struct kqueue_state {
    struct kqueue_telling telling; /* the first member: `io_state` of the sources */
    int events_max;
    uint32_t changes_max;
    uint32_t change_n;
    struct kevent *changes;
    struct kevent *events;
};

static int kqueue_init(struct loop *loop, const int64_t *options)
{
    struct kqueue_state *state = loop->mechanism_state;

    assert(loop->sources.n - 1 <= INDEX_MASK);
    state->changes_max = (uint32_t)options[0];
    state->events_max = (int)options[1];
    state->changes = malloc((size_t)options[0] * sizeof(*state->changes));
    state->events = malloc((size_t)options[1] * sizeof(*state->events));
    if (kqueue_telling_init(&state->telling, &loop->sources) == -1)
        return -1;
    return state->changes == NULL || state->events == NULL ? -1 : 0;
}

static void kqueue_done(struct loop *loop)
{
    struct kqueue_state *state = loop->mechanism_state;

    kqueue_telling_done(&state->telling);
    free(state->changes);
    free(state->events);
}

static uintptr_t tag_of(const struct loop *loop, const struct source *source)
{
    uintptr_t generation = source->generation;

    return generation << (INDEX_BITS - 1) << 1 | source_index(&loop->sources, source);
}

/* Returns the source of an event; NULL where the event is of the slot's earlier use. */
static struct source *find_event_source(const struct loop *loop, const struct kevent *event)
{
    uintptr_t tag = (uintptr_t)event->udata;
    struct source *source;

    if ((tag & INDEX_MASK) >= loop->sources.used_n)
        return NULL;
    source = source_at(&loop->sources, (uint32_t)(tag & INDEX_MASK));
    if (source->in_use && tag_of(loop, source) == tag)
        return source;
    debug_loop(loop, "an event of slot %u is stale", (unsigned)(tag & INDEX_MASK));
    return NULL;
}

static short filter_of(enum event_direction direction)
{
    return direction == EVENT_READ ? EVFILT_READ : EVFILT_WRITE;
}

static void report_kevent(struct loop *loop, const struct kevent *event)
{
    enum event_direction direction = event->filter == EVFILT_WRITE ? EVENT_WRITE : EVENT_READ;
    struct kqueue_state *state = loop->mechanism_state;
    struct source *source;
    int error = (int)event->data;

    if (event->filter == EVFILT_USER) {
        loop_report_own(loop, loop->notifier);
        return;
    }
    if (event->filter == EVFILT_TIMER) {
        loop_report_own(loop, loop->ticker);
        return;
    }
    source = find_event_source(loop, event);
    if (source == NULL ||
        (!source->events[direction].active && (!source->listening || direction != EVENT_READ)))
        return;
    if (event->flags & EV_ERROR) { /* a refused change: the owner finds out by trying */
        if (error == 0)
            return;
        log_write(loop->log, LEVEL_ALERT, error, "kevent() cannot watch descriptor %d",
            (int)event->ident);
        if (error == EBADF)
            log_debug_point(loop->log, "a source was closed under the mechanism");
        if (loop_owns(loop, source))
            loop_fail(loop, "kevent", error);
        else
            loop_report(loop, source, direction);
        return;
    }
    debug_source(loop, source, "kqueue reports %s, data %jd%s", debug_direction(direction),
        (intmax_t)event->data, event->flags & EV_EOF ? ", eof" : "");
    if (event->flags & EV_EOF) {
        /* without an error in fflags, which comes behind the data, our own half may have ended */
        if (direction == EVENT_READ || event->fflags != 0)
            source->eof = true;
        kqueue_tell_end(&state->telling, source, direction, event->data, (int)event->fflags);
    } else if (source->listening) {
        kqueue_tell_clients(&state->telling, source, event->data);
    }
    loop_report(loop, source, direction);
}

/* Removes the changes that were dropped. */
static void compact_changes(struct kqueue_state *state)
{
    uint32_t kept_n = 0;

    for (uint32_t i = 0; i < state->change_n; i++)
        if (state->changes[i].flags != 0)
            state->changes[kept_n++] = state->changes[i];
    state->change_n = kept_n;
}

/* Sends the changes without a wait. EV_RECEIPT keeps events away. */
static void send_changes(struct loop *loop)
{
    static const struct timespec no_time = { 0, 0 };
    struct kqueue_state *state = loop->mechanism_state;
    struct kevent receipts[RECEIPTS_MAX];
    uint32_t at = 0;

    compact_changes(state);
    while (at < state->change_n) {
        struct kevent *changes = &state->changes[at];
        int n = 0, got;

        for (; n < RECEIPTS_MAX && at < state->change_n; n++, at++)
            changes[n].flags |= EV_RECEIPT;
        got = kevent(loop->mechanism_fd, changes, n, receipts, n, &no_time);
        if (got == -1 && errno != EINTR) /* the changes are applied when a signal comes */
            loop_fail(loop, "kevent", errno);
        for (int i = 0; i < got; i++)
            report_kevent(loop, &receipts[i]);
    }
    state->change_n = 0;
}

/* Returns the source's latest unsent change for this direction, or NULL. A position of sent changes
 * names another source's change, or none. */
static struct kevent *find_change(
    struct loop *loop, const struct source *source, enum event_direction direction)
{
    struct kqueue_state *state = loop->mechanism_state;
    uint32_t position =
        source->position >> (POSITION_BITS * direction) & (UINT32_MAX >> POSITION_BITS);
    struct kevent *change;

    if (position == 0 || position > state->change_n)
        return NULL;
    change = &state->changes[position - 1];
    if ((uintptr_t)change->udata != tag_of(loop, source) ||
        change->filter != filter_of(direction) || change->flags == 0)
        return NULL;
    return change;
}

static struct kevent *add_change(
    struct loop *loop, struct source *source, enum event_direction direction, unsigned flags)
{
    struct kqueue_state *state = loop->mechanism_state;
    uint32_t other = UINT32_MAX >> POSITION_BITS << (POSITION_BITS * !direction);

    assert(source->fd != -1 && source->in_use);
    if (state->change_n == state->changes_max)
        send_changes(loop);
    state->changes[state->change_n++] = (struct kevent) {
        .ident = (uintptr_t)source->fd,
        .filter = filter_of(direction),
        .flags = (unsigned short)flags,
        .udata = (user_data)tag_of(loop, source),
    };
    source->position = (source->position & other) | state->change_n << (POSITION_BITS * direction);
    debug_flags(loop, source, filter_words[direction], flags, change_words);
    return &state->changes[state->change_n - 1];
}

/* Ends watching, without an owner: the filter may have gone with the descriptor, and the error must
 * not reach a source watched again. */
static void set_delete(struct kevent *change)
{
    change->flags = EV_DELETE;
    change->udata = (user_data)UINTPTR_MAX;
}

/* Drops the source's latest change; the place stays, to keep the order. */
static void drop_change(struct kevent *change)
{
    change->flags = 0;
    change->udata = (user_data)0;
}

static int kqueue_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    if (!source->events[!direction].active)
        kqueue_tell_nothing(loop->mechanism_state, source);
    add_change(loop, source, direction, EV_ADD | (source->level ? 0 : EV_CLEAR));
    return 0;
}

static int kqueue_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct kevent *change = find_change(loop, source, direction);

    if (change != NULL && (change->flags & EV_ADD)) /* the kernel has not seen it */
        drop_change(change);
    else if (change != NULL)
        set_delete(change);
    else
        set_delete(add_change(loop, source, direction, EV_DELETE));
    return 0;
}

/* Enables or disables a filter, by the listed change where there is one. */
static int change_filter(
    struct loop *loop, struct source *source, enum event_direction direction, unsigned flag)
{
    struct kevent *change = find_change(loop, source, direction);

    if (change == NULL) {
        add_change(loop, source, direction, flag);
        return 0;
    }
    if (change->flags & EV_ADD)
        flag = (change->flags & ~(unsigned)EV_DISABLE) | (flag & EV_DISABLE);
    change->flags = (unsigned short)flag;
    debug_flags(loop, source, filter_words[direction], flag, change_words);
    return 0;
}

static int kqueue_enable(struct loop *loop, struct source *source, enum event_direction direction)
{
    return change_filter(loop, source, direction, EV_ENABLE);
}

static int kqueue_disable(struct loop *loop, struct source *source, enum event_direction direction)
{
    return change_filter(loop, source, direction, EV_DISABLE);
}

static int kqueue_del_conn(struct loop *loop, struct source *source, bool closing)
{
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
        struct kevent *change = find_change(loop, source, direction);

        if (closing && change != NULL)
            drop_change(change);
        else if (!closing && source->events[direction].active)
            kqueue_del(loop, source, direction);
    }
    return 0;
}

static int kqueue_add_listener(struct loop *loop, struct source *source, bool exclusive)
{
    (void)exclusive;
    kqueue_tell_nothing(loop->mechanism_state, source);
    add_change(loop, source, EVENT_READ, EV_ADD);
    return 0;
}

static int kqueue_del_listener(struct loop *loop, struct source *source)
{
    kqueue_tell_nothing(loop->mechanism_state, source);
    return kqueue_del(loop, source, EVENT_READ);
}

static int change_own(struct loop *loop, struct kevent change)
{
    return kevent(loop->mechanism_fd, &change, 1, NULL, 0, NULL);
}

static int kqueue_start_notices(struct loop *loop)
{
    return change_own(loop, (struct kevent) { .filter = EVFILT_USER, .flags = EV_ADD | EV_CLEAR });
}

static int kqueue_notify(struct loop *loop)
{
    assert(loop->notifier != NULL);
    return change_own(loop, (struct kevent) { .filter = EVFILT_USER, .fflags = NOTE_TRIGGER });
}

static int kqueue_start_ticks(struct loop *loop, uint64_t ms)
{
    return change_own(loop, (struct kevent) {
                                .filter = EVFILT_TIMER,
                                .flags = EV_ADD | EV_CLEAR,
                                .data = (intptr_t)ms,
                            });
}

static void kqueue_process_events(struct loop *loop, int timeout)
{
    struct kqueue_state *state = loop->mechanism_state;
    struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };
    sigset_t blocked;
    int n, error;

    if (state->change_n > (uint32_t)state->events_max) /* an event for every failure */
        send_changes(loop);
    compact_changes(state);
    if (++state->telling.wait == 0)
        state->telling.wait = 1;
    debug_loop(loop, "kevent() takes %u changes", (unsigned)state->change_n);
    loop_let_signals(loop, &blocked);
    n = kevent(loop->mechanism_fd, state->changes, (int)state->change_n, state->events,
        state->events_max, timeout == -1 ? NULL : &limit);
    error = errno;
    loop_hold_signals(loop, &blocked);
    state->change_n = 0; /* applied, even if a signal has ended the wait */
    errno = error;
    if (n <= 0)
        loop_check_wait(loop, "kevent", n, timeout);
    for (int i = 0; i < n; i++)
        report_kevent(loop, &state->events[i]);
}

const struct mechanism mechanism_kqueue = {
    .name = "kqueue",
    .edge = true,
    .forgets = true,
    .options = {
        { .name = "kqueue_changes", .least = 1, .greatest = POSITION_MAX, .initial = 512 },
        { .name = "kqueue_events", .least = 1, .greatest = 65536, .initial = 512 },
    },
    .io = &kqueue_io,
    .state_size = sizeof(struct kqueue_state),
    .open = kqueue,
    .init = kqueue_init,
    .done = kqueue_done,
    .add = kqueue_add,
    .del = kqueue_del,
    .enable = kqueue_enable,
    .disable = kqueue_disable,
    .del_conn = kqueue_del_conn,
    .add_listener = kqueue_add_listener,
    .del_listener = kqueue_del_listener,
    .start_notices = kqueue_start_notices,
    .start_ticks = kqueue_start_ticks,
    .notify = kqueue_notify,
    .process_events = kqueue_process_events,
};

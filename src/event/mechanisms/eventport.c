/* SPDX-License-Identifier: BSD-2-Clause */
/* Event ports of illumos and Solaris, port_create(3C): level-triggered, as an association ends with
 * the report, and reports at once when made again for a ready descriptor.
 *
 * An association is made again right before the wait: by then the owner has taken the input, has
 * paused, or has its event posted. `pending` lists the sources to look at: reported, or armed
 * again. A pause leaves the association alone, which reports once at most. The user pointer of an
 * association is the slot's index and generation. */
#include "event/loop.h"

#include <errno.h>
#include <poll.h>
#include <port.h>
#include <stdatomic.h>
#include <stdlib.h>

static_assert(sizeof(void *) >= sizeof(uint64_t), "a user pointer has room for a generation");

/* The time until associations refused for want of resources are tried again. */
#define RETRY_MS 100

struct eventport_state {
    uint32_t events_max;
    port_event_t *events; /* between two waits their sources are 0 */
    uint32_t pending_n;
    uint32_t *pending;    /* slots; a source's `position` is the index, from 1; 0: absent */
    short *associated;    /* by slot: the events of the association that is in force; 0: none is */
    atomic_bool notified; /* an event of notify() is on its way */
};

static int eventport_init(struct loop *loop, const int64_t *options)
{
    struct eventport_state *state = loop->mechanism_state;

    state->events_max = (uint32_t)options[0];
    state->events = calloc(state->events_max, sizeof(*state->events));
    state->pending = malloc(loop->sources.n * sizeof(*state->pending));
    state->associated = calloc(loop->sources.n, sizeof(*state->associated));
    atomic_init(&state->notified, false);
    return state->events == NULL || state->pending == NULL || state->associated == NULL ? -1 : 0;
}

static void eventport_done(struct loop *loop)
{
    struct eventport_state *state = loop->mechanism_state;

    free(state->events);
    free(state->pending);
    free(state->associated);
}

static void list_pending(struct loop *loop, struct source *source)
{
    struct eventport_state *state = loop->mechanism_state;

    if (source->position != 0)
        return;
    assert(state->pending_n < loop->sources.n);
    state->pending[state->pending_n] = source_index(&loop->sources, source);
    source->position = ++state->pending_n;
}

/* Takes the source out of the list; the last source takes the place. */
static void unlist_pending(struct loop *loop, struct source *source)
{
    struct eventport_state *state = loop->mechanism_state;
    uint32_t place = source->position - 1, last;

    if (source->position == 0)
        return;
    assert(place < state->pending_n);
    assert(source_at(&loop->sources, state->pending[place]) == source);
    last = state->pending[--state->pending_n];
    state->pending[place] = last;
    source_at(&loop->sources, last)->position = place + 1;
    source->position = 0;
}

/* Makes, or changes, the association of the source's descriptor; -1 with errno. */
static int associate(struct loop *loop, struct source *source, short events)
{
    struct eventport_state *state = loop->mechanism_state;
    uint32_t index = source_index(&loop->sources, source);
    uintptr_t user = (uintptr_t)source->generation << 32 | index;

    assert(source->fd != -1 && source->in_use && events != 0);
    debug_flags(loop, source, "port_associate() of", (uint16_t)events, debug_poll_words);
    if (port_associate(
            loop->mechanism_fd, PORT_SOURCE_FD, (uintptr_t)source->fd, events, (void *)user) == -1)
        return -1;
    state->associated[index] = events;
    return 0;
}

static void dissociate(struct loop *loop, struct source *source)
{
    struct eventport_state *state = loop->mechanism_state;
    short *associated = &state->associated[source_index(&loop->sources, source)];

    if (*associated == 0)
        return;
    *associated = 0;
    if (port_dissociate(loop->mechanism_fd, PORT_SOURCE_FD, (uintptr_t)source->fd) == -1 &&
        errno != ENOENT)
        log_write(loop->log, LEVEL_ALERT, errno, "port_dissociate() failed");
}

/* The first association is made at once, so that the owner hears of a refusal. */
static int eventport_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    short events = loop_poll_flag(direction);

    if (source->events[!direction].armed)
        events |= loop_poll_flag(!direction);
    return associate(loop, source, events);
}

static int eventport_del_conn(struct loop *loop, struct source *source, bool closing)
{
    struct eventport_state *state = loop->mechanism_state;

    unlist_pending(loop, source);
    if (closing) /* ends the association too */
        state->associated[source_index(&loop->sources, source)] = 0;
    else
        dissociate(loop, source);
    return 0;
}

static int eventport_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct eventport_state *state = loop->mechanism_state;
    short associated = state->associated[source_index(&loop->sources, source)];

    if (!source->events[!direction].active)
        return eventport_del_conn(loop, source, false);
    if (associated & loop_poll_flag(!direction))
        return associate(loop, source, loop_poll_flag(!direction));
    dissociate(loop, source);
    return 0;
}

static int eventport_enable(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    (void)direction;
    list_pending(loop, source);
    return 0;
}

static int eventport_add_conn(struct loop *loop, struct source *source)
{
    return associate(loop, source, POLLIN | POLLOUT);
}

/* A port takes events of the program's own at any time. */
static int eventport_start_notices(struct loop *loop)
{
    (void)loop;
    return 0;
}

/* Wakes the loop by a user event; a single pending event is enough. */
static int eventport_notify(struct loop *loop)
{
    struct eventport_state *state = loop->mechanism_state;

    if (atomic_exchange(&state->notified, true))
        return 0;
    if (port_send(loop->mechanism_fd, 0, NULL) == 0 ||
        errno == EAGAIN) /* full: the loop will wake */
        return 0;
    atomic_store(&state->notified, false);
    return -1;
}

/* Associates the listed sources for armed directions without a posted event. Returns the wait's
 * time: refusals are tried again. */
static int renew_associations(struct loop *loop, int timeout)
{
    struct eventport_state *state = loop->mechanism_state;

    for (uint32_t i = state->pending_n; i-- > 0;) { /* the last source may take a freed place */
        struct source *source = source_at(&loop->sources, state->pending[i]);
        short needed = 0;
        bool done = true;

        assert(source->in_use && source->position == i + 1);
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
            const struct event *event = &source->events[direction];

            if (event->armed && event->queue == QUEUE_NONE)
                needed |= loop_poll_flag(direction);
            else if (event->armed)
                done = false; /* look again when the event has run */
        }
        if ((needed & ~state->associated[state->pending[i]]) == 0 ||
            associate(loop, source, needed) == 0) {
            if (done)
                unlist_pending(loop, source);
            continue;
        }
        if (errno != EBADFD) {
            log_write(loop->log, LEVEL_ALERT, errno, "port_associate() failed");
        } else {
            unlist_pending(loop, source); /* an inactive owner is told once */
            if (!loop_report_closed(loop, source, "port_associate()", "port_associate"))
                return -1;
        }
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
            if (source->events[direction].armed)
                loop_report(loop, source, direction); /* the owner finds out by trying */
        if (timeout == -1 || timeout > RETRY_MS)
            timeout = RETRY_MS;
    }
    return timeout;
}

static void report_port_event(struct loop *loop, const port_event_t *event)
{
    struct eventport_state *state = loop->mechanism_state;
    uint64_t user = (uintptr_t)event->portev_user;
    struct source *source;

    if (event->portev_source == PORT_SOURCE_USER) {
        atomic_store(&state->notified, false);
        loop_report_own(loop, loop->notifier);
        return;
    }
    if (event->portev_source != PORT_SOURCE_FD) {
        log_write(loop->log, LEVEL_ALERT, 0, "port_getn() told an event of source %d",
            (int)event->portev_source);
        return;
    }
    source = loop_source(loop, (uint32_t)user, (uint32_t)(user >> 32));
    if (source == NULL) /* an event of the slot's earlier use */
        return;
    assert((uintptr_t)source->fd == event->portev_object);
    debug_flags(
        loop, source, "eventport reports", (uint16_t)event->portev_events, debug_poll_words);
    state->associated[(uint32_t)user] = 0;
    list_pending(loop, source);
    loop_report_polled(loop, source, event->portev_events,
        (source->events[EVENT_READ].active || source->listening ? POLLIN : 0) |
            (source->events[EVENT_WRITE].active ? POLLOUT : 0));
}

/* Takes events at the end of the time and after a signal too: the kernel may have filled some in,
 * with the count as it was asked for. */
static void eventport_process_events(struct loop *loop, int timeout)
{
    struct eventport_state *state = loop->mechanism_state;
    struct timespec limit;
    uint_t n = 1; /* waits for one, and takes more */
    uint32_t reported = 0;
    sigset_t blocked;
    int error = 0;

    if (state->pending_n > 0)
        timeout = renew_associations(loop, timeout);
    if (loop->wait_error != 0)
        return;
    limit = (struct timespec) { timeout / 1000, timeout % 1000 * 1000000L };
    loop_let_signals(loop, &blocked);
    if (port_getn(loop->mechanism_fd, state->events, state->events_max, &n,
            timeout == -1 ? NULL : &limit) == -1)
        error = errno;
    loop_hold_signals(loop, &blocked);

    if (error != 0 && error != ETIME && error != EINTR) {
        loop_fail(loop, "port_getn", error);
        return;
    }
    for (; reported < n && reported < state->events_max; reported++) {
        port_event_t event = state->events[reported];

        if (event.portev_source == 0)
            break;
        state->events[reported].portev_source = 0;
        report_port_event(loop, &event);
    }
    if (error == 0 && reported < n)
        log_write(loop->log, LEVEL_ALERT, 0, "port_getn() counted %u more ready than there are",
            n - reported);
    else if (reported == 0 && timeout == -1 && error != EINTR)
        log_write(loop->log, LEVEL_ALERT, 0, "port_getn() returned no events without timeout");
}

const struct mechanism mechanism_eventport = {
    .name = "eventport",
    .forgets = true,
    .options = { { .name = "eventport_events", .least = 1, .greatest = 65536, .initial = 32 } },
    .io = &io_socket,
    .state_size = sizeof(struct eventport_state),
    .open = port_create,
    .init = eventport_init,
    .done = eventport_done,
    .add = eventport_add,
    .del = eventport_del,
    .enable = eventport_enable,
    .add_conn = eventport_add_conn,
    .del_conn = eventport_del_conn,
    .start_notices = eventport_start_notices,
    .notify = eventport_notify,
    .process_events = eventport_process_events,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a loop, and the queues of posted events. */
#pragma once

#include "base/log.h"
#include "event/debug.h"
#include "event/mechanism.h"
#include "event/timer.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>

TAILQ_HEAD(posted_events, event);

struct loop {
    struct clock clock; /* read once a turn, or once a tick of timer_resolution */
    void (*read_clock)(struct clock *clock); /* the mechanism's, or clock_read() */
    uint16_t turn; /* counts the waits, and begins again after the greatest */
    const struct mechanism *mechanism;
    void *mechanism_state; /* of mechanism->state_size bytes */
    int mechanism_fd;      /* result of mechanism->open(), or -1 */
    struct source_table sources;
    struct posted_events queues[QUEUES];
    struct {
        struct event **first, **next, **end;
    } found; /* events reported by the wait; run only if still in QUEUE_FOUND */
    struct timers timers;
    struct log *log;
    const sigset_t *wait_mask; /* signals blocked within the wait; NULL: leave the mask alone */
    struct source *notifier;   /* notify()'s: an eventfd, or none of the loop's; or NULL */
    struct source *signaler;   /* tells of signals, with a wait_mask; else NULL */
    struct source *ticker;     /* timer_resolution's: a timerfd, or likewise; or NULL */
    void (*wait_ticks)(struct loop *loop, int timeout); /* with a ticker: reads no clock */
    void (*notified)(struct loop *loop);                /* runs on the loop after notify() */
    struct file_aio *file_aio;                          /* kernel AIO (event/file_aio.h), or NULL */
    bool checked;    /* checks whole structures in a turn: simulated kernel, debug build */
    int signal_fd;   /* handlers of signals write a byte here: the pipe of `signaler`; or -1 */
    int wait_error;  /* the errno of a wait that has failed: the loop is of no use; 0: none has */
    bool noticeable; /* `checked`, or `wait_error` is set: a single test a turn */
    int notify_fd;   /* notify() writes here, unless to the notifier's descriptor; or -1 */
    uint64_t due_by_ms;    /* with a ticker: timers up to here expire, a tick behind the clock */
    uint64_t tick_ms;      /* timer_resolution; 0: none */
    uint64_t next_tick_ms; /* the next tick made by the loop itself; 0: a timer makes ticks */
};

/* Runs the events of a non-empty queue. */
void loop_run_posted(struct loop *loop, enum event_queue queue);
/* Run the events reported by the wait, and count the events yet to run. */
void loop_run_found(struct loop *loop);
size_t loop_count_found(const struct loop *loop);
/* Runs an event of the turn at once. */
void loop_run_early(struct loop *loop, struct event *event);
/* Moves the next queue's events to the normal queue. */
void loop_move_next(struct loop *loop);
/* Takes the report of a listener, or of a source of the loop's own. */
void loop_take_special(struct loop *loop, struct source *source, enum event_direction direction);
/* For mechanisms: a call needed by the wait has failed. Logs the failure; the owner ends. */
void loop_fail(struct loop *loop, const char *call, int error);
/* For mechanisms: takes a wait's result, with errno: a failure, or an end without an event. */
void loop_check_wait(struct loop *loop, const char *call, int n, int timeout);
/* For mechanisms: logs a source closed by foreign code; false: the loop's own, `call` failed. */
bool loop_report_closed(
    struct loop *loop, const struct source *source, const char *teller, const char *call);
/* For mechanisms: takes the report of a source of the loop's own that has no descriptor. */
void loop_report_own(struct loop *loop, struct source *source);
/* For mechanisms able to tell: takes the report of a connection broken both ways, besides
 * directions: the READ event runs without armed directions too, for an owner with wants_broken. */
void loop_report_broken(struct loop *loop, struct source *source);

/* Whether a ready descriptor belongs to the loop itself. */
static inline bool loop_owns(const struct loop *loop, const struct source *source)
{
    return source == loop->signaler || source == loop->notifier || source == loop->ticker;
}

/* Inline, because every turn and every event runs through here: */

/* Waits for events, has them reported, and reads the clock. `timeout` in ms; -1: for ever. */
static inline void loop_wait(struct loop *loop, int timeout)
{
    uint64_t before = loop->clock.mono_ms;

    assert(timeout >= -1);
    loop->turn++;
    debug_wait(loop, timeout);
    if (unlikely(loop->wait_ticks != NULL)) {
        loop->wait_ticks(loop, timeout);
    } else {
        loop->mechanism->process_events(loop, timeout);
        loop->read_clock(&loop->clock);
    }
    debug_waited(loop, timeout, before);
}

/* Puts an event at a queue's end; a posted event stays in place. */
static inline void loop_post(struct loop *loop, struct event *event, enum event_queue queue)
{
    if (event->queue != QUEUE_NONE) {
        debug_source(loop, source_of(event), "%s event is in the %s queue already",
            debug_direction(event->direction), debug_queue(event->queue));
        return;
    }
    assert(queue > QUEUE_NONE && queue < QUEUES);
    event->queue = (uint8_t)queue;
    TAILQ_INSERT_TAIL(&loop->queues[queue], event, link);
    debug_source(loop, source_of(event), "%s event posted to the %s queue",
        debug_direction(event->direction), debug_queue(queue));
}

/* Posts an event to run without a report: in this turn still, or, after a run in this turn, in the
 * next, lest two events, or a slot reused at once, starve the rest. */
static inline void loop_post_soon(struct loop *loop, struct event *event)
{
    loop_post(loop, event, event->turn == loop->turn ? QUEUE_NEXT : QUEUE_NORMAL);
}

static inline void loop_unpost(struct loop *loop, struct event *event)
{
    if (event->queue == QUEUE_NONE)
        return;
    debug_source(loop, source_of(event), "%s event taken out of the %s queue",
        debug_direction(event->direction), debug_queue(event->queue));
    if (event->queue != QUEUE_FOUND)
        TAILQ_REMOVE(&loop->queues[event->queue], event, link);
    event->queue = QUEUE_NONE;
}

/* Whether the event runs from the normal queue in the present turn. */
static inline bool loop_will_run(const struct event *event)
{
    return event->queue == QUEUE_FOUND || event->queue == QUEUE_NORMAL;
}

static inline bool loop_is_empty(const struct loop *loop, enum event_queue queue)
{
    return TAILQ_EMPTY(&loop->queues[queue]) &&
           (queue != QUEUE_NORMAL || loop->found.next == loop->found.first ||
               loop_count_found(loop) == 0);
}

/* Runs a queue until empty, with events posted by handlers meanwhile. */
static inline void loop_run(struct loop *loop, enum event_queue queue)
{
    if (queue == QUEUE_NORMAL && loop->found.next != loop->found.first)
        loop_run_found(loop);
    if (!TAILQ_EMPTY(&loop->queues[queue]))
        loop_run_posted(loop, queue);
}

/* Moves the next queue's events to the normal queue; returns whether a wait is needless. */
static inline bool loop_promote(struct loop *loop)
{
    if (unlikely(!TAILQ_EMPTY(&loop->queues[QUEUE_NEXT])))
        loop_move_next(loop);
    return !loop_is_empty(loop, QUEUE_NORMAL) || !TAILQ_EMPTY(&loop->queues[QUEUE_ACCEPT]);
}

/* For mechanisms: returns the source of a slot in that generation, else NULL. */
static inline struct source *loop_source(struct loop *loop, uint32_t index, uint32_t generation)
{
    struct source *source;

    if (unlikely(index >= loop->sources.used_n))
        return NULL;
    source = source_at(&loop->sources, index);
    if (likely(source->in_use && source->generation == generation))
        return source;
    debug_loop(loop, "an event of slot %" PRIu32 " is stale", index);
    return NULL;
}

/* Takes a report of a ready direction: posts the event, or runs it. */
static inline void loop_report(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    struct event *event = &source->events[direction], **place = loop->found.next;

    debug_source(loop, source, "ready to %s%s", debug_direction(direction),
        event->armed ? "" : ", waits until wanted");
    event->ready = true;
    if (!event->armed)
        return;
    if (unlikely(source->queue != QUEUE_NORMAL)) {
        loop_take_special(loop, source, direction);
    } else if (unlikely(event->queue != QUEUE_NONE || place == loop->found.end)) {
        loop_post(loop, event, QUEUE_NORMAL);
    } else {
        event->queue = QUEUE_FOUND;
        *place = event;
        loop->found.next = place + 1;
        debug_source(loop, source, "%s event posted to the %s queue",
            debug_direction(event->direction), debug_queue(QUEUE_FOUND));
    }
}

/* Returns a direction's flag of poll(2). */
static inline short loop_poll_flag(enum event_direction direction)
{
    return direction == EVENT_READ ? POLLIN : POLLOUT;
}

/* For mechanisms with flags of poll(2): reports the wanted directions; after an end or an error,
 * for the owner to try. */
static inline void loop_report_polled(
    struct loop *loop, struct source *source, int revents, int wanted)
{
    if (revents & POLLHUP)
        source->eof = true;
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        revents |= POLLIN | POLLOUT;
    if (revents & wanted & POLLIN)
        loop_report(loop, source, EVENT_READ);
    if (revents & wanted & POLLOUT)
        loop_report(loop, source, EVENT_WRITE);
}

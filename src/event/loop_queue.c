/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of a loop: events posted, reported and run, in at most one queue each. Within the wait
 * only handlers of the loop's own sources run. */
#include "event/loop_queue.h"

#include <errno.h>

void loop_fail(struct loop *loop, const char *call, int error)
{
    assert(error != 0 && error != EINTR);
    log_write(loop->log, LEVEL_ALERT, error, "%s() failed", call);
    log_debug_point(loop->log, "the wait for events has failed");
    loop->wait_error = error;
    loop->noticeable = true;
}

COLD void loop_check_wait(struct loop *loop, const char *call, int n, int timeout)
{
    if (n == -1 && errno != EINTR)
        loop_fail(loop, call, errno);
    else if (n == 0 && timeout == -1)
        log_write(loop->log, LEVEL_ALERT, 0, "%s() returned no events without timeout", call);
}

COLD bool loop_report_closed(
    struct loop *loop, const struct source *source, const char *teller, const char *call)
{
    log_write(
        loop->log, LEVEL_ALERT, 0, "%s says that descriptor %d is not open", teller, source->fd);
    log_debug_point(loop->log, "a source was closed under the mechanism");
    if (!loop_owns(loop, source))
        return true;
    loop_fail(loop, call, EBADF);
    return false;
}

void loop_take_special(struct loop *loop, struct source *source, enum event_direction direction)
{
    if (source->queue == QUEUE_NONE) {
        debug_source(loop, source, "%s event runs within the wait", debug_direction(direction));
        source->ops->run[direction](loop, source);
    } else {
        loop_post(loop, &source->events[direction], (enum event_queue)source->queue);
    }
}

void loop_report_own(struct loop *loop, struct source *source)
{
    assert(source != NULL && source->fd == -1 && loop_owns(loop, source));
    loop_take_special(loop, source, EVENT_READ);
}

COLD void loop_report_broken(struct loop *loop, struct source *source)
{
    const struct event *events = source->events;

    source->eof = true;
    if (!source->ops->wants_broken || events[EVENT_READ].armed || events[EVENT_WRITE].armed)
        return;
    debug_source(loop, source, "broken");
    loop_post(loop, &source->events[EVENT_READ], QUEUE_NORMAL);
}

/* Runs an event after its removal from the queue. */
static inline void run_taken_event(struct loop *loop, struct event *event)
{
    struct source *source = source_of(event);

    assert(source->in_use);
    debug_source(loop, source, "%s event of the %s queue runs", debug_direction(event->direction),
        debug_queue(event->queue));
    event->queue = QUEUE_NONE;
    event->turn = loop->turn;
    source->ops->run[event->direction](loop, source);
}

void loop_run_posted(struct loop *loop, enum event_queue queue)
{
    struct posted_events *posted = &loop->queues[queue];
    struct event *event;

    while ((event = TAILQ_FIRST(posted)) != NULL) {
        TAILQ_REMOVE(posted, event, link);
        run_taken_event(loop, event);
    }
}

void loop_run_found(struct loop *loop)
{
    /* a handler that gives up a listener may have the mechanism report more */
    for (struct event **event = loop->found.first; event != loop->found.next; event++)
        if (likely((*event)->queue == QUEUE_FOUND)) /* else unposted meanwhile */
            run_taken_event(loop, *event);
    loop->found.next = loop->found.first;
}

void loop_run_early(struct loop *loop, struct event *event)
{
    assert(loop_will_run(event));
    loop_unpost(loop, event);
    run_taken_event(loop, event);
}

size_t loop_count_found(const struct loop *loop)
{
    size_t n = 0;

    for (struct event **event = loop->found.first; event != loop->found.next; event++)
        n += (*event)->queue == QUEUE_FOUND;
    return n;
}

void loop_move_next(struct loop *loop)
{
    struct posted_events *next = &loop->queues[QUEUE_NEXT];
    struct event *event;

    TAILQ_FOREACH (event, next, link) {
        event->queue = QUEUE_NORMAL;
        debug_source(loop, source_of(event), "%s event moves from the next to the normal queue",
            debug_direction(event->direction));
    }
    TAILQ_CONCAT(&loop->queues[QUEUE_NORMAL], next, link);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The loop's life, its wait, and its queues. Runs an event's handler only from a queue, or from a
 * report of a source that has no queue (the loop's own). */
#include "event/loop.h"

#include <assert.h>
#include <errno.h>

/* Slots for the loop's own sources. */
#define OWN_SLOTS 3

int fb_loop_init(struct fb_loop *loop, const struct fb_loop_options *options)
{
    *loop = (struct fb_loop) {
        .mechanism = options->mechanism,
        .log = options->log,
        .wait_mask = options->wait_mask,
    };
    mechanism_check(options->mechanism);
    assert(options->slots < UINT32_MAX - OWN_SLOTS);
    for (int i = 0; i < FB_QUEUES; i++)
        TAILQ_INIT(&loop->queues[i]);
    timers_init(&loop->timers, &loop->clock, loop);
    loop->mechanism->read_clock(loop);

    if (fb_source_table_init(&loop->sources, options->slots + OWN_SLOTS, options->stride) == -1) {
        fb_log(loop->log, FB_EMERG, errno, "no memory for %u connections", options->slots);
        return -1;
    }
    if (loop->mechanism->init(loop, options->mechanism_option) == -1) {
        fb_log(loop->log, FB_EMERG, errno, "the event mechanism \"%s\" could not be started",
            loop->mechanism->name);
        fb_source_table_done(&loop->sources);
        return -1;
    }
    if (loop->mechanism->masks && loop->wait_mask != NULL && fb_loop_watch_signals(loop) == -1) {
        fb_loop_done(loop);
        return -1;
    }
    return 0;
}

void fb_loop_done(struct fb_loop *loop)
{
    if (loop->notifier != NULL)
        fb_source_close(loop, loop->notifier, false);
    if (loop->ticker != NULL)
        fb_source_close(loop, loop->ticker, false);
    if (loop->signaler != NULL)
        fb_source_close(loop, loop->signaler, false);
    assert(loop->sources.in_use_n == 0);
    loop->mechanism->done(loop);
    fb_source_table_done(&loop->sources);
}

void fb_loop_wait(struct fb_loop *loop, int timeout)
{
    assert(timeout >= -1);
    loop->mechanism->process_events(loop, timeout);
    if (loop->ticker == NULL)
        loop->mechanism->read_clock(loop);
}

void fb_loop_post(struct fb_loop *loop, struct fb_event *event, enum fb_queue queue)
{
    if (event->queue != FB_QUEUE_NONE)
        return;
    assert(queue > FB_QUEUE_NONE && queue < FB_QUEUES);
    event->queue = (uint8_t)queue;
    TAILQ_INSERT_TAIL(&loop->queues[queue], event, link);
}

void fb_loop_unpost(struct fb_loop *loop, struct fb_event *event)
{
    if (event->queue == FB_QUEUE_NONE)
        return;
    TAILQ_REMOVE(&loop->queues[event->queue], event, link);
    event->queue = FB_QUEUE_NONE;
}

void fb_loop_run(struct fb_loop *loop, enum fb_queue queue)
{
    struct fb_event *event;

    while ((event = TAILQ_FIRST(&loop->queues[queue])) != NULL) {
        struct fb_source *source = fb_source_of(event);

        assert(source->in_use);
        fb_loop_unpost(loop, event);
        source->ops->run[event->direction](loop, source);
    }
}

bool fb_loop_promote(struct fb_loop *loop)
{
    struct fb_posted *next = &loop->queues[FB_QUEUE_NEXT];
    struct fb_event *event;

    if (TAILQ_EMPTY(next))
        return false;
    TAILQ_FOREACH (event, next, link)
        event->queue = FB_QUEUE_NORMAL;
    TAILQ_CONCAT(&loop->queues[FB_QUEUE_NORMAL], next, link);
    return true;
}

struct fb_source *fb_loop_source(struct fb_loop *loop, uint32_t index, uint32_t generation)
{
    struct fb_source *source;

    if (index >= loop->sources.used_n)
        return NULL;
    source = fb_source_at(&loop->sources, index);
    return source->in_use && source->generation == generation ? source : NULL;
}

void fb_loop_report(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_event *event = &source->events[direction];

    event->ready = true;
    if (!event->armed)
        return;
    if (source->queue == FB_QUEUE_NONE)
        source->ops->run[direction](loop, source);
    else
        fb_loop_post(loop, event, source->queue);
}

static size_t check_queue(const struct fb_loop *loop, enum fb_queue queue)
{
    struct fb_event *event;
    size_t n = 0;

    TAILQ_FOREACH (event, &loop->queues[queue], link) {
        const struct fb_source *source = fb_source_of(event);

        assert(event->queue == queue);
        assert(fb_source_index(&loop->sources, source) < loop->sources.used_n);
        assert(source->in_use && source->ops != NULL);
        assert(source->ops->run[event->direction] != NULL);
        n++;
    }
    return n;
}

/* Checks the sources that are in use; returns how many of their events are posted. */
static size_t check_sources(const struct fb_loop *loop)
{
    size_t posted_n = 0;
    uint32_t in_use_n = 0;

    for (uint32_t i = 0; i < loop->sources.used_n; i++) {
        const struct fb_source *source = fb_source_at(&loop->sources, i);

        if (!source->in_use)
            continue;
        source_check(source);
        in_use_n++;
        for (int direction = 0; direction < FB_DIRECTIONS; direction++)
            posted_n += source->events[direction].queue != FB_QUEUE_NONE;
    }
    assert(in_use_n == loop->sources.in_use_n);
    return posted_n;
}

void loop_check(const struct fb_loop *loop)
{
    size_t posted_n = 0;

    assert(loop->mechanism_state != NULL);
    assert(loop->timers.clock == &loop->clock && loop->timers.loop == loop);
    assert(loop->notifier == NULL || (loop->notifier->in_use && loop->notified != NULL));
    assert(loop->ticker == NULL || loop->ticker->queue == FB_QUEUE_NONE);
    assert(loop->signaler == NULL || loop->wait_mask != NULL);
    assert(TAILQ_EMPTY(&loop->queues[FB_QUEUE_NONE]));
    for (int queue = FB_QUEUE_NONE + 1; queue < FB_QUEUES; queue++)
        posted_n += check_queue(loop, queue);
    assert(check_sources(loop) == posted_n);
    source_table_check(&loop->sources);
    timers_check(&loop->timers);
}

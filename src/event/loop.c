/* SPDX-License-Identifier: BSD-2-Clause */
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
    loop->mechanism->process_events(loop, timeout);
    if (loop->ticker == NULL)
        loop->mechanism->read_clock(loop);
}

void fb_loop_post(struct fb_loop *loop, struct fb_event *event, enum fb_queue queue)
{
    if (event->queue != FB_QUEUE_NONE)
        return;
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

int fb_source_arm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_event *event = &source->events[direction];

    if (!event->armed) {
        const struct fb_mechanism *mechanism = loop->mechanism;

        if ((event->active ? mechanism->enable : mechanism->add)(loop, source, direction) == -1)
            return -1;
        event->active = event->armed = true;
    }
    if (event->ready)
        fb_loop_post(loop, event, source->queue);
    return 0;
}

void fb_source_disarm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_event *event = &source->events[direction];

    if (!event->armed)
        return;
    loop->mechanism->disable(loop, source, direction);
    event->armed = false;
}

int fb_source_arm_both(struct fb_loop *loop, struct fb_source *source)
{
    if (loop->mechanism->add_conn(loop, source) == -1)
        return -1;
    for (int i = 0; i < FB_DIRECTIONS; i++)
        source->events[i].active = source->events[i].armed = true;
    return 0;
}

int fb_listener_arm(struct fb_loop *loop, struct fb_source *source, bool exclusive)
{
    if (source->listening)
        return 0;
    if (loop->mechanism->add_listener(loop, source, exclusive) == -1) {
        fb_log(loop->log, FB_ALERT, errno, "a listener could not be watched");
        return -1;
    }
    source->listening = source->events[FB_READ].armed = true;
    return 0;
}

void fb_listener_disarm(struct fb_loop *loop, struct fb_source *source)
{
    if (!source->listening)
        return;
    if (loop->mechanism->del_listener(loop, source) == -1)
        fb_log(loop->log, FB_ALERT, errno, "a listener could not be left alone");
    source->listening = source->events[FB_READ].armed = false;
    fb_loop_unpost(loop, &source->events[FB_READ]);
}

void fb_source_close(struct fb_loop *loop, struct fb_source *source, bool reset)
{
    fb_listener_disarm(loop, source);
    if (source->events[FB_READ].active || source->events[FB_WRITE].active)
        loop->mechanism->del_conn(loop, source, true);
    for (int i = 0; i < FB_DIRECTIONS; i++) {
        source->events[i].active = source->events[i].armed = false;
        fb_loop_unpost(loop, &source->events[i]);
    }
    if (source->fd != -1)
        source->io->close(source, reset);
    fb_source_put(&loop->sources, source);
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

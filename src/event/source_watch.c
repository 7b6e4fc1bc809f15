/* SPDX-License-Identifier: BSD-2-Clause */
/* Watching of sources: has the mechanism watch what owners arm, and keeps the flags of their
 * events. The mechanism is asked before the flags change, and nothing changes when it refuses. */
#include "event/loop.h"

#include <assert.h>
#include <errno.h>

int fb_source_arm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction)
{
    struct fb_event *event = &source->events[direction];

    assert(source->in_use && source->fd != -1);
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
    assert(event->active && !source->listening);
    loop->mechanism->disable(loop, source, direction);
    event->armed = false;
}

int fb_source_arm_both(struct fb_loop *loop, struct fb_source *source)
{
    assert(source->in_use && source->fd != -1 && !source->listening);
    assert(!source->events[FB_READ].active && !source->events[FB_WRITE].active);
    if (loop->mechanism->add_conn(loop, source) == -1)
        return -1;
    for (int i = 0; i < FB_DIRECTIONS; i++)
        source->events[i].active = source->events[i].armed = true;
    return 0;
}

int fb_listener_arm(struct fb_loop *loop, struct fb_source *source, bool exclusive)
{
    assert(source->in_use && source->fd != -1);
    if (source->listening)
        return 0;
    assert(!source->events[FB_READ].active);
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
        fb_log(loop->log, FB_ALERT, errno, "a listener could not be taken out of the watched ones");
    source->listening = source->events[FB_READ].armed = false;
    fb_loop_unpost(loop, &source->events[FB_READ]);
}

void fb_source_close(struct fb_loop *loop, struct fb_source *source, bool reset)
{
    assert(source->in_use);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports a watched descriptor as ready, whose far end a test does not have. */
#include "kit/kit.h"

#include <forkbeard/watch.h>

static void report(struct loop *loop, struct source *source, enum event_direction direction)
{
    if (source->events[direction].armed)
        loop_report(loop, source, direction);
}

void fb_test_ready(fb_test *test, int fd, unsigned events)
{
    const struct fb_watch *watch = NULL;
    struct kit_worker *own;

    CHECK_KIND(test, KIT_TEST);
    KIT_FOREACH_ALIVE(own, test)
    {
        watch = watches_find(&own->worker, fd);
        if (watch != NULL)
            break;
    }
    if (watch == NULL)
        kit_misused("fb_test_ready() of descriptor %d, which nobody watches", fd);
    if (events & FB_WATCH_READ)
        report(kit_loop_of(own), watch->source, EVENT_READ);
    if (events & FB_WATCH_WRITE)
        report(kit_loop_of(own), watch->source, EVENT_WRITE);
}

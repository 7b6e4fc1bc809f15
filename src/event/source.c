/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of sources, a mapping of slots, whose generations outlive their uses; and the watching
 * of armed directions by the mechanism, which is asked before flags change. */
#include "event/source.h"

#include "event/loop_queue.h"
#include "os/memory.h"

#include <errno.h>
#include <sys/mman.h>

int source_table_init(struct source_table *table, uint32_t n, size_t stride)
{
    void *base;

    assert(stride >= sizeof(struct source) && n > 0 && n < SOURCE_NONE);
    base = os_memory_reserve(n * stride);
    if (base == NULL)
        return -1;
    os_wiped_mark(base, n * stride); /* a handle in a child of fork() is none */
    *table = (struct source_table) { .base = base, .stride = stride, .n = n, .free = SOURCE_NONE };
    return 0;
}

void source_table_done(struct source_table *table)
{
    if (table->base != NULL)
        munmap(table->base, table->n * table->stride);
    table->base = NULL;
}

void source_table_check(const struct source_table *table)
{
    uint32_t free_n = 0;

    assert(table->base != NULL && table->used_n <= table->n);
    assert(table->in_use_n <= table->used_n);
    for (uint32_t i = table->free; i != SOURCE_NONE; i = source_at(table, i)->position) {
        const struct source *source = source_at(table, i);

        assert(i < table->used_n && !source->in_use);
        for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
            assert(
                !source->events[direction].active && source->events[direction].queue == QUEUE_NONE);
        free_n++;
        assert(free_n <= table->used_n - table->in_use_n); /* no circle */
    }
}

void source_check(const struct source *source)
{
    assert(source->in_use && source->queue < QUEUES);
    assert(source->ops != NULL && source->io != NULL);
    assert((!source->held && !source->partial) || source->layered);
    assert(source->layered == (source->io->leave != NULL));
    assert(!source->listening || source->events[EVENT_READ].armed);
    assert(!source->listening || !source->events[EVENT_READ].active);
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++) {
        const struct event *event = &source->events[direction];

        assert(event->direction == direction && event->queue < QUEUES);
        assert(!event->armed || event->active || (source->listening && direction == EVENT_READ));
        assert(!event->active || source->fd != -1);
        assert(!event->armed || source->ops->run[direction] != NULL);
    }
}

/* ---- Watching ---- */

int source_arm(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct event *event = &source->events[direction];

    assert(source->in_use && source->fd != -1);
    if (!event->armed) {
        const struct mechanism *mechanism = loop->mechanism;
        int (*watch)(struct loop *, struct source *, enum event_direction) =
            event->active ? mechanism->enable : mechanism->add;

        if (watch != NULL && watch(loop, source, direction) == -1)
            return -1;
        debug_source(loop, source, "%s %s watching: %s", loop->mechanism->name,
            event->active ? "resumes" : "starts", debug_direction(direction));
        event->active = event->armed = true;
    }
    if (event->ready) {
        assert(source->queue == QUEUE_NORMAL); /* others are never paused */
        loop_post_soon(loop, event);
    }
    return 0;
}

void source_disarm_armed(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct event *event = &source->events[direction];

    assert(event->armed && event->active && !source->listening);
    if (loop->mechanism->disable != NULL)
        loop->mechanism->disable(loop, source, direction);
    debug_source(
        loop, source, "%s pauses watching: %s", loop->mechanism->name, debug_direction(direction));
    event->armed = false;
}

/* Makes a mechanism without add_conn watch both directions. */
static int add_both(struct loop *loop, struct source *source)
{
    if (loop->mechanism->add(loop, source, EVENT_READ) == -1)
        return -1;
    if (loop->mechanism->add(loop, source, EVENT_WRITE) == 0)
        return 0;
    loop->mechanism->del(loop, source, EVENT_READ);
    return -1;
}

int source_arm_both(struct loop *loop, struct source *source)
{
    assert(source->in_use && source->fd != -1 && !source->listening);
    assert(!source->events[EVENT_READ].active && !source->events[EVENT_WRITE].active);
    if ((loop->mechanism->add_conn != NULL ? loop->mechanism->add_conn : add_both)(loop, source) ==
        -1)
        return -1;
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        source->events[i].active = source->events[i].armed = true;
    debug_source(loop, source, "%s starts watching: read and write", loop->mechanism->name);
    return 0;
}

static void del_level(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct event *event = &source->events[direction];

    loop->mechanism->del(loop, source, direction);
    debug_source(
        loop, source, "%s stops watching: %s", loop->mechanism->name, debug_direction(direction));
    event->active = event->armed = event->ready = false;
    loop_unpost(loop, event);
}

int source_watch_level(struct loop *loop, struct source *source, bool read, bool write)
{
    const bool wanted[EVENT_DIRECTIONS] = { [EVENT_READ] = read, [EVENT_WRITE] = write };
    bool added = false;

    assert(source->in_use && source->fd != -1 && source->level && !source->listening);
    for (int i = 0; i < EVENT_DIRECTIONS; i++) { /* first, so that a refusal changes nothing */
        if (!wanted[i] || source->events[i].active)
            continue;
        source->events[i].ready = false; /* an unwanted hang-up is told again */
        if (source_arm(loop, source, i) == -1) {
            int error = errno;

            if (added)
                del_level(loop, source, EVENT_READ);
            errno = error;
            return -1;
        }
        added = true;
    }
    for (int i = 0; i < EVENT_DIRECTIONS; i++)
        if (!wanted[i] && source->events[i].active)
            del_level(loop, source, i);
    return 0;
}

int source_arm_listener(struct loop *loop, struct source *source, bool exclusive)
{
    const struct mechanism *mechanism = loop->mechanism;

    assert(source->in_use && source->fd != -1);
    if (source->listening)
        return 0;
    assert(!source->events[EVENT_READ].active);
    if ((mechanism->add_listener != NULL ? mechanism->add_listener(loop, source, exclusive)
                                         : mechanism->add(loop, source, EVENT_READ)) == -1) {
        log_write(loop->log, LEVEL_ALERT, errno, "a listener could not be watched");
        return -1;
    }
    debug_source(loop, source, "%s starts watching the listener%s", loop->mechanism->name,
        exclusive && loop->mechanism->exclusive ? ", exclusively" : "");
    source->listening = source->events[EVENT_READ].armed = true;
    return 0;
}

void source_disarm_listener(struct loop *loop, struct source *source)
{
    const struct mechanism *mechanism = loop->mechanism;

    if (!source->listening)
        return;
    debug_source(loop, source, "%s stops watching the listener", loop->mechanism->name);
    if ((mechanism->del_listener != NULL ? mechanism->del_listener(loop, source)
                                         : mechanism->del(loop, source, EVENT_READ)) == -1)
        log_write(loop->log, LEVEL_ALERT, errno,
            "a listener could not be taken out of the watched sources");
    source->listening = source->events[EVENT_READ].armed = false;
    loop_unpost(loop, &source->events[EVENT_READ]);
}

void source_release_disarmed(struct loop *loop)
{
    if (loop->mechanism->release != NULL)
        loop->mechanism->release(loop);
}

static inline void end_watching(struct loop *loop, struct source *source, bool closing)
{
    struct event *read = &source->events[EVENT_READ], *write = &source->events[EVENT_WRITE];

    assert(source->in_use);
    if (unlikely(source->listening))
        source_disarm_listener(loop, source);
    if (read->active || write->active) {
        debug_source(loop, source, "%s stops watching%s", loop->mechanism->name,
            closing ? ", the descriptor is closed" : "");
        if (!(closing && loop->mechanism->ends_by_close))
            loop->mechanism->del_conn(loop, source, closing);
    }
    read->active = read->armed = write->active = write->armed = false;
    if (read->queue != QUEUE_NONE)
        loop_unpost(loop, read);
    if (write->queue != QUEUE_NONE)
        loop_unpost(loop, write);
}

void source_detach(struct loop *loop, struct source *source)
{
    end_watching(loop, source, false);
    source->fd = -1;
    source_put(&loop->sources, source);
}

void source_abandon(struct loop *loop, struct source *source)
{
    end_watching(loop, source, true);
    source->fd = -1;
    source_put(&loop->sources, source);
}

void source_close(struct loop *loop, struct source *source, bool reset)
{
    end_watching(loop, source, true);
    if (source->fd != -1)
        source->io->close(source, reset);
    source_put(&loop->sources, source);
}

void source_move(struct loop *loop, struct source *from, struct source *to)
{
    assert(from->fd != -1 && to->fd == -1 && !to->layered);
    assert(from->layered || from->io == to->io);
    end_watching(loop, from, false);
    if (from->layered)
        from->io->move(from, to);
    to->fd = from->fd;
    to->eof = from->eof;
    from->fd = -1;
}

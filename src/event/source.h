/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of events: a descriptor, an event for each direction, and the operations to move bytes.
 * Sources are slots of a loop's table. Index and generation, new after each use, travel with every
 * event of the kernel, so that a late event is recognised. An armed direction is watched by the
 * mechanism; a watched direction need not be armed. */
#pragma once

#include "base/memory.h"
#include "event/io.h"

#include <assert.h>
#include <bsd/sys/queue.h>
#include <stdarg.h>

struct loop;
struct source;

enum event_direction { EVENT_READ, EVENT_WRITE, EVENT_DIRECTIONS };

enum event_queue {
    QUEUE_NONE,   /* no queue: not posted; events of such a source run within the wait */
    QUEUE_ACCEPT, /* listeners: run under the accept mutex */
    QUEUE_NORMAL,
    QUEUE_NEXT,  /* for the next turn */
    QUEUE_FLUSH, /* connections marked dirty by a callback: run right after the callback */
    QUEUE_FOUND, /* part of the normal queue, reported by the wait: loop->found */
    QUEUES,
};

struct event {
    TAILQ_ENTRY(event) link; /* in the queue that `queue` names */
    uint8_t queue;           /* enum event_queue; QUEUE_NONE: not posted */
    uint8_t direction;
    bool armed;    /* the owner wants the event */
    bool active;   /* the mechanism watches the direction */
    bool ready;    /* cleared only by the owner, on "again" or a short read */
    uint16_t turn; /* loop->turn when it ran last */
};

struct source_ops {
    void (*run[EVENT_DIRECTIONS])(struct loop *loop, struct source *source);
    /* Logs a debug line with details of the owner; NULL: the plain line. In debug builds alone. */
    void (*debug)(const struct source *source, const char *format, va_list args)
        PRINTF_FORMAT(2, 0);
    bool wants_broken; /* see loop_report_broken() */
};

struct source {
    int fd;
    uint32_t generation;
    uint32_t position; /* the mechanism's own; in a free slot: the next free slot */
    uint8_t queue;     /* enum event_queue: where the source's events are posted */
    bool in_use;
    bool eof;           /* the kernel has announced the peer's end; bytes may still lie before it */
    bool listening : 1; /* a listener that the mechanism watches */
    bool level : 1;     /* events as long as ready, by any mechanism */
    bool layered : 1;   /* `io` is a layer's, upon the mechanism's */
    bool held : 1;      /* the layer holds output that the socket has had no room for */
    bool partial : 1;   /* the layer holds input, the rest of which has to come first */
    const struct source_ops *ops;
    const struct io_ops *io;
    void *io_state; /* the operations' own: loop->mechanism_state, or NULL */
    struct event events[EVENT_DIRECTIONS];
};

/* A loop's slots: memory that is touched when a slot is first used. */
struct source_table {
    char *base;
    size_t stride; /* size of the owner's struct, beginning with the struct source */
    uint32_t n;
    uint32_t used_n; /* slots beyond have never been used */
    uint32_t free;   /* the first free slot among the used, or SOURCE_NONE */
    uint32_t in_use_n;
};

#define SOURCE_NONE UINT32_MAX

/* Maps n slots of `stride` bytes; -1 with errno. */
int source_table_init(struct source_table *table, uint32_t n, size_t stride);
void source_table_done(struct source_table *table);
void source_table_check(const struct source_table *table);
void source_check(const struct source *source);

static inline uint32_t source_index(const struct source_table *table, const struct source *source)
{
    return (uint32_t)((size_t)((const char *)source - table->base) / table->stride);
}

static inline struct source *source_at(const struct source_table *table, uint32_t index)
{
    return (struct source *)(void *)(table->base + (size_t)index * table->stride);
}

static inline struct source *source_of(struct event *event)
{
    if (event->direction == EVENT_READ)
        return container_of(event, struct source, events[EVENT_READ]);
    return container_of(event, struct source, events[EVENT_WRITE]);
}

/* Takes a slot, zeroed but for its generation; NULL when every slot is in use. */
static ALWAYS_INLINE struct source *source_get_sized(struct source_table *table, size_t stride)
{
    struct source *source;
    uint32_t generation;
    uint16_t turn;

    assert(stride == table->stride);
    if (likely(table->free != SOURCE_NONE)) {
        source = source_at(table, table->free);
        assert(!source->in_use && table->free < table->used_n);
        table->free = source->position;
        generation = source->generation;
        turn = source->events[EVENT_READ].turn; /* kept: see event/loop.h, loop_post_soon() */
        memory_clear(source, stride);
        source->generation = generation;
        source->events[EVENT_READ].turn = turn;
    } else if (table->used_n < table->n) {
        source = source_at(table, table->used_n++);
    } else {
        return NULL;
    }
    source->in_use = true;
    source->fd = -1;
    source->queue = QUEUE_NORMAL;
    source->events[EVENT_WRITE].direction = EVENT_WRITE;
    table->in_use_n++;
    return source;
}

static inline struct source *source_get(struct source_table *table)
{
    return source_get_sized(table, table->stride);
}

/* Gives a slot back, whose events are neither active nor posted any more. */
static inline void source_put(struct source_table *table, struct source *source)
{
    assert(source->in_use && !source->listening);
    source->in_use = false;
    source->generation++;
    source->position = table->free;
    table->free = source_index(table, source);
    table->in_use_n--;
}

/* ---- Watching: the mechanism watches the directions that owners arm ---- */

/* Arms a direction. The event of a ready source is posted by loop_post_soon(): no second edge would
 * come. -1 with errno where the mechanism refuses (no memory). */
int source_arm(struct loop *loop, struct source *source, enum event_direction direction);
void source_disarm_armed(struct loop *loop, struct source *source, enum event_direction direction);
/* Pauses a direction; costs no system call where events are edges. */
static inline void source_disarm(
    struct loop *loop, struct source *source, enum event_direction direction)
{
    if (source->events[direction].armed)
        source_disarm_armed(loop, source, direction);
}
int source_arm_both(struct loop *loop, struct source *source);
/* Start and end watching a listener; `exclusive`: the kernel wakes a single waiting worker. */
int source_arm_listener(struct loop *loop, struct source *source, bool exclusive);
void source_disarm_listener(struct loop *loop, struct source *source);
/* Drops the kernel's references to disarmed listeners. Not within a callback with lent input. */
void source_release_disarmed(struct loop *loop);
/* Makes a source with `level` wait for exactly these directions: no direction is paused, so that an
 * unwanted direction costs no report, and `ready` means nothing. -1 with errno, and nothing has
 * changed. */
int source_watch_level(struct loop *loop, struct source *source, bool read, bool write);
/* Gives a slot back after foreign code has closed the descriptor; the number may be reused. */
void source_abandon(struct loop *loop, struct source *source);
/* Ends watching and posting, closes the descriptor (if any) and gives the slot back. */
void source_close(struct loop *loop, struct source *source, bool reset);
/* Ends watching and posting and gives the slot back, but leaves the descriptor open. */
void source_detach(struct loop *loop, struct source *source);
/* Gives a source's descriptor to a source without one; neither is watched then. */
void source_move(struct loop *loop, struct source *from, struct source *to);

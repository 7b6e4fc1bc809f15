/* SPDX-License-Identifier: BSD-2-Clause */
/* A source of events: a descriptor, an event for each direction, and the operations to move bytes.
 *
 * Sources are slots of one table a loop. A slot's index and its generation, which changes whenever
 * the slot is given back, travel with every event of the kernel, so that a late one is recognised.
 * An armed direction is watched by the mechanism; a watched one need not be armed. */
#pragma once

#include "event/io.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fb_loop;
struct fb_source;

enum fb_direction { FB_READ, FB_WRITE, FB_DIRECTIONS };

enum fb_queue {
    FB_QUEUE_NONE,   /* no queue: not posted; a source with it has its events run within the wait */
    FB_QUEUE_ACCEPT, /* listeners: run under the accept mutex */
    FB_QUEUE_NORMAL,
    FB_QUEUE_NEXT,   /* for the next turn */
    FB_QUEUE_SETTLE, /* connections that a callback has marked dirty: run right after it */
    FB_QUEUES,
};

struct fb_event {
    TAILQ_ENTRY(fb_event) link; /* in the queue that `queue` names */
    uint8_t queue;              /* enum fb_queue; FB_QUEUE_NONE: not posted */
    uint8_t direction;
    bool armed;  /* the owner wants the event */
    bool active; /* the mechanism watches the direction */
    bool ready;  /* cleared only by its owner, on "again" or a short read */
};

struct fb_source_ops {
    void (*run[FB_DIRECTIONS])(struct fb_loop *loop, struct fb_source *source);
};

struct fb_source {
    int fd;
    uint32_t generation;
    uint32_t position; /* the mechanism's own; in a free slot: the next free slot */
    uint8_t queue;     /* enum fb_queue: where the source's events are posted */
    bool in_use;
    bool eof;       /* the kernel has announced the peer's end; bytes may still lie before it */
    bool listening; /* a listener that the mechanism watches */
    const struct fb_source_ops *ops;
    const struct fb_io_ops *io;
    void *io_state; /* the operations' own: loop->mechanism_state, or NULL */
    struct fb_event events[FB_DIRECTIONS];
};

/* A loop's slots: memory that is touched when a slot is first used. */
struct fb_source_table {
    char *base;
    size_t stride; /* size of the owner's struct, whose first member is the struct fb_source */
    uint32_t n;
    uint32_t used_n; /* slots beyond have never been used */
    uint32_t free;   /* the first free slot among the used, or FB_NO_SLOT */
    uint32_t in_use_n;
};

#define FB_NO_SLOT UINT32_MAX

/* Maps n slots of `stride` bytes; -1 with errno. */
int fb_source_table_init(struct fb_source_table *table, uint32_t n, size_t stride);
void fb_source_table_done(struct fb_source_table *table);

/* Takes a slot, zeroed but for its generation; NULL when every slot is in use. */
struct fb_source *fb_source_get(struct fb_source_table *table);
/* Gives a slot back, whose events are neither active nor posted any more. */
void fb_source_put(struct fb_source_table *table, struct fb_source *source);

/* Arms a direction. The event of a source that is known to be ready is posted, because its edge
 * will not come again. -1 with errno where the mechanism refuses (no memory). */
int fb_source_arm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);
/* Pauses a direction; costs no system call where events are edges. */
void fb_source_disarm(struct fb_loop *loop, struct fb_source *source, enum fb_direction direction);
/* Arms both directions at once. */
int fb_source_arm_both(struct fb_loop *loop, struct fb_source *source);

/* Start and end watching a listener; `exclusive`: the kernel wakes one of the workers that wait. */
int fb_listener_arm(struct fb_loop *loop, struct fb_source *source, bool exclusive);
void fb_listener_disarm(struct fb_loop *loop, struct fb_source *source);

/* Ends watching and posting, closes the descriptor (if any) and gives the slot back. */
void fb_source_close(struct fb_loop *loop, struct fb_source *source, bool reset);

/* Asserts what holds of a table, and of a source that is in use. */
void source_table_check(const struct fb_source_table *table);
void source_check(const struct fb_source *source);

static inline uint32_t fb_source_index(
    const struct fb_source_table *table, const struct fb_source *source)
{
    return (uint32_t)((size_t)((const char *)source - table->base) / table->stride);
}

static inline struct fb_source *fb_source_at(const struct fb_source_table *table, uint32_t index)
{
    return (struct fb_source *)(void *)(table->base + (size_t)index * table->stride);
}

static inline struct fb_source *fb_source_of(struct fb_event *event)
{
    struct fb_event *first = event - event->direction;

    return (struct fb_source *)(void *)((char *)first - offsetof(struct fb_source, events));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of sources: a mapping of slots. A slot's generation outlives its uses. */
#include "event/source.h"

#include "os/memory.h"

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

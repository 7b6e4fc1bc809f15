/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds protocols that use a connection after its end. The slot of an ended connection stays unused
 * for a long time, so that the SDK detects the old handle, and the address sanitizer, if there is
 * one, detects access to the protocol's state. */
#include "kit/kit.h"

/* Functions of the address sanitizer; NULL in a program without it. */
extern void __asan_poison_memory_region(const volatile void *p, size_t n) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *p, size_t n) __attribute__((weak));

static void poison_state(const struct fb_conn *conn)
{
    const struct binding *binding = conn->owner;

    if (__asan_poison_memory_region == NULL || conn->outgoing || conn->state == NULL)
        return;
    __asan_poison_memory_region(conn->state, binding->server->protocol->conn_state);
}

static void slot_released(struct net *net)
{
    struct source_table *table = &net->loop.sources;

    if (table->n - table->used_n > net->connections_max && table->free != SOURCE_NONE) {
        /* the slot is the first of the free list, and its content is unchanged */
        poison_state((const struct fb_conn *)(void *)source_at(table, table->free));
        table->free = SOURCE_NONE;
    }
}

void kit_slots_guard(fb_test *test)
{
    struct net *net = &test->worker.stream.net;

    assert(net->released == NULL);
    net->released = slot_released;
}

void kit_slots_unguard(fb_test *test)
{
    struct stream *stream = &test->worker.stream;

    assert(stream->net.released == slot_released);
    stream->net.released = NULL;
    if (__asan_unpoison_memory_region == NULL)
        return;
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (stream->slabs[i].base != NULL)
            __asan_unpoison_memory_region(stream->slabs[i].base, stream->slabs[i].size);
}

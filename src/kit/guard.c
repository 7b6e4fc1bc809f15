/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds protocols using a connection after the end, or memory beyond the state, and connections
 * with a call of `opened` but not of `closed`. The slot of an ended connection stays unused for a
 * long time, so that the SDK detects the old handle. A zone lies behind each state, and is checked
 * after each turn; the address sanitizer, if any, detects access to zones, and to the states of
 * ended connections, at once. */
#include "checked/memory.h"
#include "features/pass/pass.h"
#include "kit/kit.h"
#include "sdk/handle.h"

#include <string.h>

/* ---- States ---- */

/* Bytes of a zone. */
#define ZONE 64

/* Functions of the address sanitizer; NULL in a program without it. */
extern void __asan_poison_memory_region(const volatile void *p, size_t n) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *p, size_t n) __attribute__((weak));

void kit_states_widen(const fb_protocol *copy)
{
    if (copy->conn_state > 0)
        ((fb_protocol *)copy)->conn_state += ZONE; /* the test's own copy */
}

/* The zone of a client; NULL without state. */
static uint8_t *zone_of(const struct fb_conn *conn, const struct server *server)
{
    const fb_protocol *protocol = server->protocol;
    uint8_t *state =
        protocol != NULL && protocol->conn_state > 0 ? stream_state_at(conn, server) : NULL;

    return state != NULL ? state + server->protocol->conn_state - ZONE : NULL;
}

static void guard_zone(const struct fb_conn *conn)
{
    uint8_t *zone = zone_of(conn, session_server_of(conn));

    if (zone == NULL)
        return;
    memset(zone, CHECKED_BYTE, ZONE);
    if (__asan_poison_memory_region != NULL)
        __asan_poison_memory_region(zone, ZONE);
}

static void check_zone(const struct fb_conn *conn)
{
    static const uint8_t zeros[ZONE]; /* `opened` has not been called */
    const struct server *server = session_server_of(conn);
    uint8_t *zone = __asan_poison_memory_region == NULL ? zone_of(conn, server) : NULL;

    if (zone == NULL || checked_is_filled(zone, ZONE) || memcmp(zone, zeros, ZONE) == 0)
        return;
    kit_fault(kit_test_of(sdk_worker_of(conn)), "wrote beyond the %u bytes of its conn_state",
        server->protocol->conn_state - ZONE);
    memset(zone, CHECKED_BYTE, ZONE);
}

static void check_client(struct fb_conn *conn, void *arg)
{
    (void)arg;
    if (!conn->outgoing)
        check_zone(conn);
}

void kit_states_check(struct kit_worker *own)
{
    net_each(&own->worker.stream.net, check_client, NULL);
}

static void poison_state(const struct fb_conn *conn)
{
    const struct binding *binding = conn->owner;
    void *state;

    if (__asan_poison_memory_region == NULL || conn->outgoing)
        return;
    state = stream_state_at(conn, binding->server); /* conn->state may be fb_become()'s */
    if (state != NULL)
        __asan_poison_memory_region(state, binding->server->protocol->conn_state);
}

static void unguard_zone(const struct fb_conn *conn)
{
    uint8_t *zone = conn->outgoing ? NULL : zone_of(conn, session_server_of(conn));

    if (__asan_unpoison_memory_region != NULL && zone != NULL)
        __asan_unpoison_memory_region(zone, ZONE);
}

static void slot_released(struct net *net)
{
    struct source_table *table = &net->loop.sources;
    const struct fb_conn *conn;

    if (table->free == SOURCE_NONE)
        return;
    /* the slot is the first of the free list, and its content is unchanged */
    conn = (const struct fb_conn *)(void *)source_at(table, table->free);
    if (table->n - table->used_n > net->connections_max) {
        poison_state(conn);
        table->free = SOURCE_NONE;
    } else {
        unguard_zone(conn); /* the slot is used again */
    }
}

void kit_slots_guard(struct worker *worker)
{
    struct net *net = &worker->stream.net;

    assert(net->released == NULL);
    net->released = slot_released;
}

void kit_slots_unguard(struct worker *worker)
{
    struct stream *stream = &worker->stream;

    assert(stream->net.released == slot_released);
    stream->net.released = NULL;
    if (__asan_unpoison_memory_region == NULL)
        return;
    for (unsigned i = 0; i < STREAM_PROTOCOLS_MAX; i++)
        if (stream->slabs[i].base != NULL)
            __asan_unpoison_memory_region(stream->slabs[i].base, stream->slabs[i].size);
}

/* ---- Callbacks, of clients' connections alone ---- */

/* The callbacks of the connection's protocol. */
static const fb_ops *own_ops(const fb_test *test, const fb_conn *conn)
{
    const fb_protocol *protocol = fb_worker_of(conn)->protocol;
    unsigned i = 0;

    while (test->protocols[i] != protocol) {
        assert(test->protocols[i] != NULL);
        i++;
    }
    return &test->own_ops[i];
}

static int watched_opened(fb_conn *conn, void *state)
{
    fb_test *test = kit_test_of(sdk_worker_of(conn));
    const fb_ops *ops = own_ops(test, conn);
    int result = 0;

    test->openings++;
    guard_zone(conn);
    if (ops->opened != NULL)
        result = ops->opened(conn, state);
    if (pass_is_due(conn)) /* the next server may run this protocol, too */
        unguard_zone(conn);
    return result;
}

static void watched_closed(fb_conn *conn, void *state, fb_reason reason)
{
    fb_test *test = kit_test_of(sdk_worker_of(conn));
    const fb_ops *ops = own_ops(test, conn);

    test->closings++;
    assert(test->closings <= test->openings);
    if (ops->closed != NULL)
        ops->closed(conn, state, reason);
    check_zone(conn);
}

void kit_watch_callbacks(fb_test *test)
{
    for (unsigned i = 0; test->protocols[i] != NULL; i++) {
        fb_ops *ops = (fb_ops *)test->protocols[i]->ops; /* the test's copy, in its own memory */

        assert(ops->opened != watched_opened);
        test->own_ops[i] = *ops;
        ops->opened = watched_opened;
        ops->closed = watched_closed;
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* io_uring(7), by liburing: a turn's receives, sends and waits go to the kernel with one system
 * call, which also waits. Input lies in a buffer of the ring (ring_io.c). Events are levels: an
 * operation is given again when the owner has taken its result. */
#include "event/mechanisms/ring_ops.h"

#include <errno.h>

/* The longest time that a descriptor closed by foreign code stays open in the kernel. */
#define RENEW_MS 1000

enum { OPTION_ENTRIES, OPTION_BUFFERS }; /* in the order of the options */

static int uring_init(struct loop *loop, const int64_t *options)
{
    struct ring *ring = loop->mechanism_state;

    ring->loop = loop;
    if (ring_open(ring, (unsigned)options[OPTION_ENTRIES], (unsigned)options[OPTION_BUFFERS]) == -1)
        return -1;
    ring->kind = RING_KIND;
    return 0;
}

static void uring_done(struct loop *loop)
{
    struct ring *ring = loop->mechanism_state;

    if (ring->kind == 0) /* a failed init() */
        return;
    ring_drain(ring);
    assert(ring->in_use_n == 0 && ring->busy_n == 0 && ring->held_n == 0);
    ring_close(ring);
    ring->kind = 0;
}

/* Adds and enables a direction. */
static int add_wish(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct ring *ring = ring_of_loop(loop);
    struct ring_watch *watch = ring_watch_get(ring, source);

    assert(source->fd != -1);
    if (watch == NULL)
        return -1;
    watch->wanted[direction] = true;
    ring_update_unread(ring, watch);
    ring_note_change(ring, watch);
    return 0;
}

/* Pauses a direction: the next wait cancels the operation, unless enabled again before. */
static int pause_direction(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct ring *ring = ring_of_loop(loop);
    struct ring_watch *watch = ring_watch_of(ring, source);

    if (watch == NULL)
        return 0;
    watch->wanted[direction] = false;
    ring_update_unread(ring, watch);
    ring_note_change(ring, watch);
    return 0;
}

static int uring_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    pause_direction(loop, source, direction);
    /* without ring_io a source leaves nothing to close in the ring: the watch can go */
    if (ring_is_plain(source) && !source->events[!direction].active)
        ring_forget(ring_of_loop(loop), source);
    return 0;
}

/* Ends receiving too where the descriptor is left open. */
static int uring_del_conn(struct loop *loop, struct source *source, bool closing)
{
    for (int direction = 0; direction < EVENT_DIRECTIONS; direction++)
        pause_direction(loop, source, (enum event_direction)direction);
    if (ring_is_plain(source) || !closing)
        ring_forget(ring_of_loop(loop), source);
    return 0;
}

static int uring_add_listener(struct loop *loop, struct source *source, bool exclusive)
{
    struct ring_watch *watch = ring_watch_get(ring_of_loop(loop), source);

    (void)exclusive;
    if (watch == NULL)
        return -1;
    watch->listening = true;
    return add_wish(loop, source, EVENT_READ);
}

static int uring_del_listener(struct loop *loop, struct source *source)
{
    ring_forget(ring_of_loop(loop), source);
    return 0;
}

/* A wait for a listener keeps the socket open, until the kernel hears of the end of waiting. */
static void uring_release(struct loop *loop)
{
    struct ring *ring = ring_of_loop(loop);

    ring_prepare(ring);
    ring_enter(ring, 0, NULL);
    ring_reap(ring);
}

/* The kernel holds a file open during a wait: the far end of a descriptor closed by foreign code,
 * such as the master's channel, would hear nothing. So plain waits are renewed a while after
 * handlers have run. Returns the longest time for the wait. */
static int renew_waits(struct ring *ring, int timeout)
{
    uint64_t now = ring->loop->clock.mono_ms;

    if (ring->renew_at_ms == 0) { /* handlers will run after this wait */
        ring->renew_at_ms = now + RENEW_MS;
    } else if (now >= ring->renew_at_ms) {
        ring->renew_at_ms = 0;
        ring_renew(ring);
        timeout = 0;
    } else if (timeout == -1 || ring->renew_at_ms - now < (uint64_t)timeout) {
        timeout = (int)(ring->renew_at_ms - now);
    }
    return timeout;
}

static void uring_process_events(struct loop *loop, int timeout)
{
    struct ring *ring = ring_of_loop(loop);
    unsigned given;
    int result;

    ring_buffers_take_back(ring);
    if (unlikely(loop->checked))
        ring_check(ring);
    ring_prepare(ring);
    timeout = renew_waits(ring, timeout);
    if (!TAILQ_EMPTY(&ring->unread))
        timeout = 0;
    given = io_uring_sq_ready(&ring->io);
    result = ring_enter(ring, timeout, loop->wait_mask);
    /* EBUSY: results wait for room, made by reaping */
    if (unlikely(result < 0 && result != -EINTR && result != -ETIME && result != -EBUSY &&
                 result != -EAGAIN))
        loop_fail(loop, "io_uring_enter", -result);
    if (ring_reap(ring) == 0 && result == 0 && given == 0 && timeout == -1)
        log_write(loop->log, LEVEL_ALERT, 0, "io_uring_enter() returned no events without timeout");
}

const struct mechanism mechanism_io_uring = {
    .name = "io_uring",
    .masks = true,
    .by_use_alone = true,
    .unfiltered = true,
    .yields = true,
    .options = { { .name = "io_uring_entries", .least = 1, .greatest = 32768, .initial = 256 },
        { .name = "io_uring_buffers", .least = 1, .greatest = 32768, .initial = 256 } },
    .io = &ring_io,
    .state_size = sizeof(struct ring),
    .available = ring_is_possible,
    .init = uring_init,
    .done = uring_done,
    .add = add_wish,
    .del = uring_del,
    .enable = add_wish,
    .disable = pause_direction,
    .del_conn = uring_del_conn,
    .add_listener = uring_add_listener,
    .del_listener = uring_del_listener,
    .release = uring_release,
    .notify = loop_notify_descriptor,
    .process_events = uring_process_events,
};

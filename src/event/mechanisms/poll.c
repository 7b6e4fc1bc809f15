/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2): a dense array of descriptors, and a parallel array of slots. `position` of a source is
 * its place, from 1; 0: not watched. An entry without events is a paused source's that wants
 * errors, and goes with the first report, lest poll() reports a hang-up again and again. */
#include "event/loop.h"
#include "os/wakeup.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct poll_state {
    uint32_t n;
    struct pollfd *fds;
    uint32_t *slots;
};

static int poll_init(struct loop *loop, const int64_t *options)
{
    struct poll_state *state = loop->mechanism_state;

    (void)options;
    state->fds = malloc(loop->sources.n * sizeof(*state->fds));
    state->slots = malloc(loop->sources.n * sizeof(*state->slots));
    return state->fds == NULL || state->slots == NULL ? -1 : 0;
}

static void poll_done(struct loop *loop)
{
    struct poll_state *state = loop->mechanism_state;

    free(state->fds);
    free(state->slots);
}

static int poll_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct poll_state *state = loop->mechanism_state;

    assert(source->fd != -1);
    if (source->position == 0) {
        assert(state->n < loop->sources.n);
        state->fds[state->n] = (struct pollfd) { .fd = source->fd };
        state->slots[state->n] = source_index(&loop->sources, source);
        source->position = ++state->n;
    }
    state->fds[source->position - 1].fd = source->fd;
    state->fds[source->position - 1].events |= loop_poll_flag(direction);
    return 0;
}

/* Takes the source's entry out of the array; the last entry moves to its place. */
static void remove_polled(struct loop *loop, struct source *source)
{
    struct poll_state *state = loop->mechanism_state;
    uint32_t place = source->position - 1, last = state->n - 1;

    if (source->position == 0)
        return;
    assert(place <= last);
    assert(source_at(&loop->sources, state->slots[place]) == source);
    if (place != last) {
        state->fds[place] = state->fds[last];
        state->slots[place] = state->slots[last];
        source_at(&loop->sources, state->slots[place])->position = place + 1;
    }
    state->n--;
    source->position = 0;
}

static int poll_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct poll_state *state = loop->mechanism_state;
    struct pollfd *entry;

    if (source->position == 0)
        return 0;
    entry = &state->fds[source->position - 1];
    entry->events &= (short)~loop_poll_flag(direction);
    if (entry->events == 0) /* poll() would report a hang-up all the same */
        remove_polled(loop, source);
    return 0;
}

static int poll_pause(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct poll_state *state = loop->mechanism_state;

    if (!source->ops->wants_broken || source->position == 0)
        return poll_del(loop, source, direction);
    state->fds[source->position - 1].events &= (short)~loop_poll_flag(direction);
    return 0;
}

static int poll_del_conn(struct loop *loop, struct source *source, bool closing)
{
    (void)closing;
    remove_polled(loop, source);
    return 0;
}

/* Reports an entry. A closed descriptor is skipped from then on, as a negative number, until the
 * source is armed anew. */
static void report_entry(struct loop *loop, struct pollfd *entry, uint32_t slot)
{
    struct source *source = source_at(&loop->sources, slot);
    short revents = entry->revents;

    assert(source->in_use && source->fd == entry->fd);
    debug_flags(loop, source, "poll reports", (uint16_t)revents, debug_poll_words);
    if ((revents & POLLNVAL) && !loop_report_closed(loop, source, "poll()", "poll"))
        return;
    if (revents & POLLNVAL)
        entry->fd = ~entry->fd;
    if (revents & POLLERR)
        loop_report_broken(loop, source);
    loop_report_polled(loop, source, revents, entry->events);
}

static void poll_process_events(struct loop *loop, int timeout)
{
    struct poll_state *state = loop->mechanism_state;
    int left = os_wait_poll(state->fds, state->n, timeout, loop->wait_mask);

    if (left <= 0)
        loop_check_wait(loop, "poll", left, timeout);
    for (uint32_t i = 0; i < state->n && left > 0; i++) {
        if (state->fds[i].revents == 0)
            continue;
        left--;
        report_entry(loop, &state->fds[i], state->slots[i]);
        if (state->fds[i].events == 0) /* the last entry moves here */
            remove_polled(loop, source_at(&loop->sources, state->slots[i--]));
    }
    if (left > 0)
        log_write(loop->log, LEVEL_ALERT, 0, "poll() counted %d more ready than there are", left);
}

const struct mechanism mechanism_poll = {
    .name = "poll",
    .masks = LINUX_SYSTEM,
    .tells_broken = true,
    .tells_refused = true,
    .io = &io_socket,
    .state_size = sizeof(struct poll_state),
    .init = poll_init,
    .done = poll_done,
    .add = poll_add,
    .del = poll_del,
    .enable = poll_add,
    .disable = poll_pause,
    .del_conn = poll_del_conn,
    .notify = loop_notify_descriptor,
    .process_events = poll_process_events,
};

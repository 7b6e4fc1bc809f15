/* SPDX-License-Identifier: BSD-2-Clause */
/* poll(2): a dense array of descriptors, and a parallel array of slots. `position` of a source is
 * its place, counted from 1; 0: not watched. An entry without events is a paused source's, for
 * owners that want errors, and goes with the first report: poll() would report a hang-up again and
 * again. */
#include "base/check.h"
#include "event/loop.h"
#include "os/wakeup.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define POLL_KIND KIND('p', 'o', 'l', 'l')

struct poll_state {
    unsigned kind;
    uint32_t n;
    struct pollfd *fds;
    uint32_t *slots;
};

static bool poll_available(void)
{
    return true;
}

static int poll_init(struct loop *loop, const int64_t *options)
{
    struct poll_state *state = calloc(1, sizeof(*state));

    (void)options;
    if (state == NULL)
        return -1;
    state->kind = POLL_KIND;
    state->fds = malloc(loop->sources.n * sizeof(*state->fds));
    state->slots = malloc(loop->sources.n * sizeof(*state->slots));
    loop->mechanism_state = state;
    if (state->fds == NULL || state->slots == NULL) {
        loop->mechanism->done(loop);
        return -1;
    }
    return 0;
}

static void poll_done(struct loop *loop)
{
    struct poll_state *state = loop->mechanism_state;

    CHECK_KIND(state, POLL_KIND);
    state->kind = 0;
    free(state->fds);
    free(state->slots);
    free(state);
    loop->mechanism_state = NULL;
}

static short events_of(enum event_direction direction)
{
    return direction == EVENT_READ ? POLLIN : POLLOUT;
}

static int poll_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct poll_state *state = loop->mechanism_state;

    CHECK_KIND(state, POLL_KIND);
    assert(source->fd != -1);
    if (source->position == 0) {
        assert(state->n < loop->sources.n);
        state->fds[state->n] = (struct pollfd) { .fd = source->fd };
        state->slots[state->n] = source_index(&loop->sources, source);
        source->position = ++state->n;
    }
    state->fds[source->position - 1].fd = source->fd;
    state->fds[source->position - 1].events |= events_of(direction);
    return 0;
}

/* Takes the source's entry out of the array; the last entry moves to its place. */
static void remove_entry(struct loop *loop, struct source *source)
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
    entry->events &= (short)~events_of(direction);
    if (entry->events == 0) /* poll() would report a hang-up all the same */
        remove_entry(loop, source);
    return 0;
}

static int poll_pause(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct poll_state *state = loop->mechanism_state;

    if (!source->ops->wants_broken || source->position == 0)
        return poll_del(loop, source, direction);
    state->fds[source->position - 1].events &= (short)~events_of(direction);
    return 0;
}

static int poll_del_conn(struct loop *loop, struct source *source, bool closing)
{
    (void)closing;
    remove_entry(loop, source);
    return 0;
}

/* Reports an entry. A closed descriptor is skipped from then on, by a negative number, until the
 * source is armed anew: an inactive owner is told once. */
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
    if (revents & POLLHUP)
        source->eof = true;
    if (revents & POLLERR)
        loop_report_broken(loop, source);
    if (revents & (POLLERR | POLLHUP | POLLNVAL))
        revents |= POLLIN | POLLOUT; /* the owner finds out the cause by trying */

    if ((revents & POLLIN) && (entry->events & POLLIN))
        loop_report(loop, source, EVENT_READ);
    if ((revents & POLLOUT) && (entry->events & POLLOUT))
        loop_report(loop, source, EVENT_WRITE);
}

static void poll_process_events(struct loop *loop, int timeout)
{
    struct poll_state *state = loop->mechanism_state;
    int left;

    CHECK_KIND(state, POLL_KIND);
    left = os_wait_poll(state->fds, state->n, timeout, loop->wait_mask);
    if (left <= 0)
        loop_check_wait(loop, "poll", left, timeout);
    for (uint32_t i = 0; i < state->n && left > 0; i++) {
        if (state->fds[i].revents == 0)
            continue;
        left--;
        report_entry(loop, &state->fds[i], state->slots[i]);
        if (state->fds[i].events == 0) /* the last entry moves here */
            remove_entry(loop, source_at(&loop->sources, state->slots[i--]));
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
    .available = poll_available,
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

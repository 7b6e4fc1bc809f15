/* SPDX-License-Identifier: BSD-2-Clause */
/* /dev/poll of illumos and Solaris, poll(4D): the kernel keeps a set of descriptors, changed by
 * writing and asked by an ioctl. Level-triggered: a paused direction is taken out of the set.
 *
 * Written events are added to the kernel's: to have fewer, the descriptor is removed first. Changes
 * are written before the wait, or when `devpoll_changes` descriptors have changed. The kernel
 * reports descriptors alone: `entries` have slot and generation. A closed descriptor stays in the
 * set, so that a new source's entry begins with a removal. */
#include "event/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/devpoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEVICE "/dev/poll"

/* A descriptor. */
struct entry {
    uint32_t slot, generation; /* the source, while there are `wanted` ones */
    short wanted;              /* the events that its source waits for */
    short kernel;              /* the events that the kernel's set has */
    bool stale;                /* a new source's: the kernel's entry is to go in any case */
    bool changed;              /* in the list of changed ones */
    int next;                  /* in that list, or -1 */
};

struct devpoll_state {
    int first_changed; /* a list of entries; -1: empty */
    int changed_n, changes_max;
    int events_max;
    int entry_n;
    struct entry *entries;
    struct pollfd *changes; /* changes_max of them, to be written */
    struct pollfd *events;  /* events_max; between two waits their descriptors are -1 */
};

static int open_device(void)
{
    return open(DEVICE, O_RDWR | O_CLOEXEC);
}

/* The kernel refuses to tell more events than there could be descriptors. */
static int limit_events(int64_t n)
{
    struct rlimit limits;

    if (getrlimit(RLIMIT_NOFILE, &limits) == 0 && limits.rlim_cur > 1 &&
        limits.rlim_cur <= (rlim_t)n)
        n = (int64_t)limits.rlim_cur - 1;
    return (int)n;
}

static int devpoll_init(struct loop *loop, const int64_t *options)
{
    struct devpoll_state *state = loop->mechanism_state;

    state->first_changed = -1;
    state->changes_max = limit_events(options[0]);
    state->events_max = limit_events(options[1]);
    state->changes = malloc((size_t)state->changes_max * sizeof(*state->changes));
    state->events = malloc((size_t)state->events_max * sizeof(*state->events));
    if (state->changes == NULL || state->events == NULL)
        return -1;
    for (int i = 0; i < state->events_max; i++)
        state->events[i].fd = -1;
    return 0;
}

static void devpoll_done(struct loop *loop)
{
    struct devpoll_state *state = loop->mechanism_state;

    free(state->entries);
    free(state->changes);
    free(state->events);
}

/* Returns the descriptor's entry, after making room; NULL without memory. */
static struct entry *entry_at(struct devpoll_state *state, int fd)
{
    struct entry *entries;
    int n = state->entry_n > 0 ? state->entry_n : 64;

    assert(fd >= 0);
    if (fd < state->entry_n)
        return &state->entries[fd];
    while (n <= fd)
        n = n > INT_MAX / 2 ? INT_MAX : 2 * n;
    entries = realloc(state->entries, (size_t)n * sizeof(*entries));
    if (entries == NULL)
        return NULL;
    for (int i = state->entry_n; i < n; i++)
        entries[i] = (struct entry) { .next = -1 };
    state->entries = entries;
    state->entry_n = n;
    return &entries[fd];
}

/* Writes changes to the kernel's set; false after loop_fail(). */
static bool write_changes(struct loop *loop, int n)
{
    struct devpoll_state *state = loop->mechanism_state;
    size_t size = (size_t)n * sizeof(*state->changes);
    ssize_t written;

    assert(n <= state->changes_max);
    if (n == 0)
        return true;
    debug_loop(loop, "devpoll writes %d changes", n);
    do
        written = write(loop->mechanism_fd, state->changes, size);
    while (written == -1 && errno == EINTR);
    if (written == (ssize_t)size)
        return true;
    loop_fail(loop, DEVICE ": write", written == -1 ? errno : EIO);
    return false;
}

/* Puts a change into the buffer; writes a full buffer. */
static bool put_change(struct loop *loop, int *n, int fd, short events)
{
    struct devpoll_state *state = loop->mechanism_state;

    if (*n == state->changes_max) {
        if (!write_changes(loop, *n))
            return false;
        *n = 0;
    }
    state->changes[(*n)++] = (struct pollfd) { .fd = fd, .events = events };
    return true;
}

/* Makes the kernel's events of a descriptor the wanted events. */
static bool change_entry(struct loop *loop, int *n, int fd)
{
    struct devpoll_state *state = loop->mechanism_state;
    struct entry *entry = &state->entries[fd];

    if (entry->kernel != 0 && (entry->stale || (entry->kernel & ~entry->wanted) != 0)) {
        if (!put_change(loop, n, fd, POLLREMOVE))
            return false;
        entry->kernel = 0;
    }
    entry->stale = false;
    if ((entry->wanted & ~entry->kernel) != 0) {
        if (!put_change(loop, n, fd, (short)(entry->wanted & ~entry->kernel)))
            return false;
        entry->kernel = entry->wanted;
    }
    return true;
}

/* Brings the kernel's set up to date; false after loop_fail(). */
static bool update_set(struct loop *loop)
{
    struct devpoll_state *state = loop->mechanism_state;
    int n = 0;

    while (state->first_changed != -1) {
        struct entry *entry = &state->entries[state->first_changed];

        assert(entry->changed && state->changed_n > 0);
        if (!change_entry(loop, &n, state->first_changed))
            return false;
        state->first_changed = entry->next;
        state->changed_n--;
        entry->changed = false;
    }
    assert(state->changed_n == 0);
    return write_changes(loop, n);
}

/* Notes that a descriptor's entry differs from the kernel's; a failure ends the loop. */
static void note_change(struct loop *loop, int fd)
{
    struct devpoll_state *state = loop->mechanism_state;
    struct entry *entry = &state->entries[fd];

    if (entry->changed)
        return;
    if (state->changed_n >= state->changes_max)
        update_set(loop);
    entry->changed = true;
    entry->next = state->first_changed;
    state->first_changed = fd;
    state->changed_n++;
}

static int devpoll_add(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct devpoll_state *state = loop->mechanism_state;
    uint32_t slot = source_index(&loop->sources, source);
    struct entry *entry;

    assert(source->fd != -1 && source->in_use);
    entry = entry_at(state, source->fd);
    if (entry == NULL)
        return -1;
    if (entry->slot != slot || entry->generation != source->generation) {
        entry->wanted = 0; /* if wanted, closed by foreign code */
        entry->stale = true;
    }
    entry->slot = slot;
    entry->generation = source->generation;
    entry->wanted |= loop_poll_flag(direction);
    note_change(loop, source->fd);
    return 0;
}

static void drop_wanted(struct loop *loop, struct source *source, short events)
{
    struct devpoll_state *state = loop->mechanism_state;

    if (source->fd >= state->entry_n || (state->entries[source->fd].wanted & events) == 0)
        return;
    if (state->entries[source->fd].slot != source_index(&loop->sources, source))
        return; /* the descriptor was closed, and belongs to a newer source */
    state->entries[source->fd].wanted &= (short)~events;
    note_change(loop, source->fd);
}

static int devpoll_del(struct loop *loop, struct source *source, enum event_direction direction)
{
    drop_wanted(loop, source, loop_poll_flag(direction));
    return 0;
}

static int devpoll_del_conn(struct loop *loop, struct source *source, bool closing)
{
    (void)closing;
    drop_wanted(loop, source, POLLIN | POLLOUT);
    return 0;
}

static void report_pollfd(struct loop *loop, const struct pollfd *event)
{
    struct devpoll_state *state = loop->mechanism_state;
    short revents = event->revents, wanted;
    const struct entry *entry;
    struct source *source;

    if (event->fd < 0 || event->fd >= state->entry_n)
        return;
    entry = &state->entries[event->fd];
    source = entry->wanted == 0 ? NULL : loop_source(loop, entry->slot, entry->generation);
    if (source == NULL) /* released by a source reported earlier */
        return;
    assert(source->fd == event->fd);
    debug_flags(loop, source, "/dev/poll reports", (uint16_t)revents, debug_poll_words);
    if ((revents & POLLNVAL) && !loop_report_closed(loop, source, DEVICE, DEVICE ": ioctl"))
        return;
    wanted = entry->wanted;
    if (revents & POLLNVAL) /* an inactive owner is told once */
        drop_wanted(loop, source, POLLIN | POLLOUT);
    loop_report_polled(loop, source, revents, wanted);
}

static void devpoll_process_events(struct loop *loop, int timeout)
{
    struct devpoll_state *state = loop->mechanism_state;
    struct dvpoll wait = {
        .dp_fds = state->events,
        .dp_nfds = (nfds_t)state->events_max,
        .dp_timeout = timeout,
    };
    sigset_t blocked;
    int n, in_vain;

    if (state->first_changed != -1 && !update_set(loop))
        return;
    loop_let_signals(loop, &blocked);
    n = ioctl(loop->mechanism_fd, DP_POLL, &wait);
    loop_hold_signals(loop, &blocked);
    if (n <= 0)
        loop_check_wait(loop, DEVICE ": ioctl", n, timeout);
    in_vain = n > state->events_max ? n - state->events_max : 0;
    for (int i = 0; i < n && i < state->events_max; i++) {
        struct pollfd event = state->events[i];

        state->events[i].fd = -1; /* to notice an entry that a later wait does not fill in */
        in_vain += event.fd == -1;
        report_pollfd(loop, &event);
    }
    if (in_vain > 0)
        log_write(loop->log, LEVEL_ALERT, 0,
            DEVICE ": ioctl() counted %d more ready than there are", in_vain);
}

const struct mechanism mechanism_devpoll = {
    .name = "/dev/poll",
    .options = { { .name = "devpoll_changes", .least = 1, .greatest = 65536, .initial = 32 },
        { .name = "devpoll_events", .least = 1, .greatest = 65536, .initial = 32 } },
    .io = &io_socket,
    .state_size = sizeof(struct devpoll_state),
    .open = open_device,
    .init = devpoll_init,
    .done = devpoll_done,
    .add = devpoll_add,
    .del = devpoll_del,
    .enable = devpoll_add,
    .disable = devpoll_del,
    .del_conn = devpoll_del_conn,
    .notify = loop_notify_descriptor,
    .process_events = devpoll_process_events,
};

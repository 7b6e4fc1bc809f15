/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches: a source with levels for each, in slots beyond those of connections. The number of a
 * closed descriptor may be in use again: device and inode are compared first. */
#include "worker/watches.h"

#include "base/check.h"
#include "worker/worker.h"

#include <errno.h>
#include <forkbeard/watch.h>
#include <sys/stat.h>

#define WATCH_KIND KIND('W', 'T', 'C', 'H')

static int compare_watches(const struct fb_watch *a, const struct fb_watch *b)
{
    return (a->fd > b->fd) - (a->fd < b->fd);
}

RB_GENERATE_INTERNAL(watches_tree, fb_watch, node, compare_watches, static __attribute__((unused)))

struct fb_watch *watches_find(struct worker *worker, int fd)
{
    struct fb_watch wanted = { .fd = fd };

    return RB_FIND(watches_tree, &worker->watches.tree, &wanted);
}

static struct loop *loop_of(const struct fb_watch *watch)
{
    return &watch->handle->worker->stream.net.loop;
}

/* Whether the descriptor was closed. Descriptors of eventfd, timerfd and epoll look the same. */
static bool is_closed(const struct fb_watch *watch)
{
    struct stat now;

    return fstat(watch->fd, &now) == -1 || now.st_dev != watch->device ||
           now.st_ino != watch->inode;
}

/* Whether the mechanism would ask the kernel about the number of a closed descriptor for ever. */
static bool asks_for_ever(const struct mechanism *mechanism)
{
    return !(mechanism->edge && mechanism->forgets);
}

/* Takes the source from a watch with a closed descriptor. */
static void abandon_source(struct fb_watch *watch)
{
    RB_REMOVE(watches_tree, &watch->handle->worker->watches.tree, watch);
    source_abandon(loop_of(watch), watch->source);
    watch->source = NULL;
}

/* Does so with an alert, because it was the protocol's mistake. */
static COLD void lose_source(struct fb_watch *watch)
{
    struct worker *worker = watch->handle->worker;

    log_write(&worker->log, LEVEL_ALERT, 0,
        "descriptor %d, which is watched, was closed before fb_unwatch(), by protocol \"%s\"",
        watch->fd, watch->handle->protocol->name);
    log_debug_point(&worker->log, "a descriptor was closed before fb_unwatch()");
    abandon_source(watch);
}

/* Loses the source of a closed descriptor's watch, if any. */
static void lose_closed(struct worker *worker, int fd)
{
    struct fb_watch *watch = watches_find(worker, fd);

    if (watch != NULL && is_closed(watch))
        lose_source(watch);
}

/* ---- Events ---- */

/* Takes the direction's event, and returns the event's bit if running or posted. */
static unsigned take_event(
    struct loop *loop, struct source *source, enum event_direction direction, bool runs)
{
    struct event *event = &source->events[direction];

    event->ready = false;
    if (!runs && event->queue == QUEUE_NONE)
        return 0;
    loop_unpost(loop, event);
    return direction == EVENT_READ ? FB_WATCH_READ : FB_WATCH_WRITE;
}

static void run_watch(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct worker *worker = worker_of_loop(loop);
    const int fd = source->fd;
    struct fb_watch *watch = watches_find(worker, fd);
    struct fb_worker *handle;
    unsigned events;

    CHECK_KIND(watch, WATCH_KIND);
    assert(watch->source == source);
    handle = watch->handle;
    events = take_event(loop, source, EVENT_READ, direction == EVENT_READ) |
             take_event(loop, source, EVENT_WRITE, direction == EVENT_WRITE);
    if (asks_for_ever(loop->mechanism) && is_closed(watch)) {
        lose_source(watch);
        return;
    }
    worker_callback_begin(handle, CALLBACK_READY);
    watch->ready(handle, watch, events, watch->arg);
    worker_callback_end(worker);
    if (asks_for_ever(loop->mechanism)) /* before a client is given the number */
        lose_closed(worker, fd);
    net_flush(&worker->stream.net);
}

static void run_watch_read(struct loop *loop, struct source *source)
{
    run_watch(loop, source, EVENT_READ);
}

static void run_watch_write(struct loop *loop, struct source *source)
{
    run_watch(loop, source, EVENT_WRITE);
}

static const struct source_ops watch_ops = {
    .run = { [EVENT_READ] = run_watch_read, [EVENT_WRITE] = run_watch_write },
};

/* ---- Watches ---- */

static int watch_source(struct fb_watch *watch, unsigned events)
{
    return source_watch_level(loop_of(watch), watch->source, (events & FB_WATCH_READ) != 0,
        (events & FB_WATCH_WRITE) != 0);
}

/* Gives the watch a source and watches the source; on failure an errno, without a source. */
static int make_watch_source(struct fb_watch *watch, unsigned events)
{
    struct loop *loop = loop_of(watch);
    struct source *source = source_get(&loop->sources);
    int error;

    if (source == NULL)
        return EMFILE;
    source->fd = watch->fd;
    source->level = true;
    source->ops = &watch_ops;
    source->io = &io_socket;
    watch->source = source;
    if (watch_source(watch, events) == 0)
        return 0;
    error = errno;
    source_detach(loop, source);
    watch->source = NULL;
    return error;
}

/* Looks at the descriptor; an errno where it cannot be watched. */
static int check_descriptor(struct worker *worker, int fd, struct stat *status)
{
    if (fstat(fd, status) == -1)
        return errno;
    if (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode) || S_ISBLK(status->st_mode))
        return EPERM; /* as epoll; poll() would always be ready */
    lose_closed(worker, fd);
    if (watches_find(worker, fd) != NULL)
        return EEXIST;
    return worker->watches.n >= FB_WATCHES_MAX ? EMFILE : 0;
}

static struct fb_watch *create_watch(struct fb_worker *handle, int fd, watch_ready *ready)
{
    struct fb_watch *watch = memory_alloc(handle->worker->stream.net.memory, sizeof(*watch));

    if (watch != NULL)
        *watch = (struct fb_watch) {
            .kind = WATCH_KIND,
            .fd = fd,
            .handle = handle,
            .ready = ready,
        };
    return watch;
}

static void free_watch(struct fb_watch *watch)
{
    watch->kind = 0;
    memory_release(watch->handle->worker->stream.net.memory, watch);
}

struct fb_watch *watches_add(
    struct fb_worker *handle, int fd, unsigned events, watch_ready *ready, void *arg)
{
    struct worker *worker = worker_of(handle);
    struct fb_watch *watch = NULL;
    struct stat status;
    int error;

    assert(ready != NULL);
    error =
        events & ~(FB_WATCH_READ | FB_WATCH_WRITE) ? EINVAL : check_descriptor(worker, fd, &status);
    if (error == 0) {
        watch = create_watch(handle, fd, ready);
        error = watch == NULL ? ENOMEM : make_watch_source(watch, events);
    }
    if (error != 0) {
        if (watch != NULL)
            free_watch(watch);
        errno = error;
        return NULL;
    }
    watch->arg = arg;
    watch->device = status.st_dev;
    watch->inode = status.st_ino;
    RB_INSERT(watches_tree, &worker->watches.tree, watch);
    LIST_INSERT_HEAD(&worker->watches.list, watch, link);
    worker->watches.n++;
    return watch;
}

int watches_set(struct fb_watch *watch, unsigned events)
{
    CHECK_KIND(watch, WATCH_KIND);
    worker_of(watch->handle);
    if (events & ~(FB_WATCH_READ | FB_WATCH_WRITE)) {
        errno = EINVAL;
        return -1;
    }
    if (watch->source != NULL && is_closed(watch))
        lose_source(watch);
    if (watch->source == NULL) {
        errno = EBADF;
        return -1;
    }
    return watch_source(watch, events);
}

void watches_remove(struct fb_watch *watch)
{
    struct worker *worker;

    CHECK_KIND(watch, WATCH_KIND);
    worker = worker_of(watch->handle);
    if (watch->source != NULL && is_closed(watch))
        lose_source(watch);
    if (watch->source != NULL) {
        RB_REMOVE(watches_tree, &worker->watches.tree, watch);
        source_detach(loop_of(watch), watch->source);
    }
    assert(worker->watches.n > 0);
    worker->watches.n--;
    LIST_REMOVE(watch, link);
    free_watch(watch);
}

/* The loop does not turn any more: descriptors closed before are no mistake. */
void watches_remove_all(struct fb_worker *handle)
{
    struct worker *worker = handle->worker;
    struct fb_watch *watch, *next;

    if (worker == NULL) /* the protocol has not been started */
        return;
    assert(worker->phase == WORKER_ENDING);
    LIST_FOREACH_SAFE (watch, &worker->watches.list, link, next) {
        if (watch->handle != handle)
            continue;
        if (watch->source != NULL && is_closed(watch))
            abandon_source(watch);
        watches_remove(watch);
    }
}

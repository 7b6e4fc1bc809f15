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
#define EVENTS (FB_WATCH_READ | FB_WATCH_WRITE)

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

/* Takes the source from a watch with a closed descriptor. */
static void abandon_source(struct fb_watch *watch)
{
    RB_REMOVE(watches_tree, &watch->handle->worker->watches.tree, watch);
    source_abandon(loop_of(watch), watch->source);
    watch->source = NULL;
}

/* Abandons the source with an alert, if the descriptor was closed, by the protocol's mistake. */
static bool lose_closed(struct fb_watch *watch)
{
    struct worker *worker = watch->handle->worker;

    if (watch->source == NULL || !is_closed(watch))
        return false;
    log_write(&worker->log, LEVEL_ALERT, 0,
        "descriptor %d, still watched, was closed before fb_unwatch(), by protocol \"%s\"",
        watch->fd, watch->handle->protocol->name);
    log_debug_point(&worker->log, "a descriptor was closed before fb_unwatch()");
    abandon_source(watch);
    return true;
}

/* ---- Events ---- */

/* Takes the direction's event, and returns the event's bit if reported: running or posted. */
static unsigned take_event(struct loop *loop, struct source *source, enum event_direction direction)
{
    struct event *event = &source->events[direction];
    bool is_reported = event->ready && event->armed;

    event->ready = false;
    loop_unpost(loop, event);
    return !is_reported ? 0 : direction == EVENT_READ ? FB_WATCH_READ : FB_WATCH_WRITE;
}

/* Runs both directions at once. */
static void run_watch(struct loop *loop, struct source *source)
{
    struct worker *worker = worker_of_loop(loop);
    const int fd = source->fd;
    struct fb_watch *watch = watches_find(worker, fd);
    bool asks = !(loop->mechanism->edge && loop->mechanism->forgets);
    unsigned events;

    CHECK_KIND(watch, WATCH_KIND);
    assert(watch->source == source);
    events = take_event(loop, source, EVENT_READ) | take_event(loop, source, EVENT_WRITE);
    assert(events != 0);
    /* the mechanism would ask the kernel about the number of a closed descriptor for ever */
    if (asks && lose_closed(watch))
        return;
    WORKER_CALL(
        watch->handle, CALLBACK_READY, watch->ready(watch->handle, watch, events, watch->arg));
    if (asks && (watch = watches_find(worker, fd)) != NULL)
        lose_closed(watch); /* before a client is given the number */
    net_flush(&worker->stream.net);
}

static const struct source_ops watch_ops = {
    .run = { [EVENT_READ] = run_watch, [EVENT_WRITE] = run_watch },
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
    int error;

    watch->source = worker_source(watch->handle->worker, watch->fd, &watch_ops);
    if (watch->source == NULL)
        return EMFILE;
    watch->source->level = true;
    if (watch_source(watch, events) == 0)
        return 0;
    error = errno;
    source_detach(loop_of(watch), watch->source);
    watch->source = NULL;
    return error;
}

/* Looks at the descriptor; an errno where it cannot be watched. */
static int check_descriptor(struct worker *worker, int fd, struct stat *status)
{
    struct fb_watch *watch;

    if (fstat(fd, status) == -1)
        return errno;
    if (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode) || S_ISBLK(status->st_mode))
        return EPERM; /* epoll's refusal; poll() would always be ready */
    watch = watches_find(worker, fd);
    if (watch != NULL && !lose_closed(watch))
        return EEXIST;
    return worker->watches.n >= FB_WATCHES_MAX ? EMFILE : 0;
}

struct fb_watch *watches_add(
    struct fb_worker *handle, int fd, unsigned events, watch_ready *ready, void *arg)
{
    struct worker *worker = worker_of(handle);
    struct stat status;
    int error = events & ~EVENTS ? EINVAL : check_descriptor(worker, fd, &status);
    struct fb_watch *watch =
        error == 0 ? memory_alloc(worker->stream.net.memory, sizeof(*watch)) : NULL;

    assert(ready != NULL);
    if (watch != NULL) {
        *watch = (struct fb_watch) {
            .kind = WATCH_KIND,
            .fd = fd,
            .handle = handle,
            .ready = ready,
            .arg = arg,
            .device = status.st_dev,
            .inode = status.st_ino,
        };
        error = make_watch_source(watch, events);
    } else if (error == 0) {
        error = ENOMEM;
    }
    if (error != 0) {
        memory_release(worker->stream.net.memory, watch);
        errno = error;
        return NULL;
    }
    RB_INSERT(watches_tree, &worker->watches.tree, watch);
    LIST_INSERT_HEAD(&worker->watches.list, watch, link);
    worker->watches.n++;
    return watch;
}

int watches_set(struct fb_watch *watch, unsigned events)
{
    CHECK_KIND(watch, WATCH_KIND);
    worker_of(watch->handle);
    if ((events & ~EVENTS) == 0) {
        lose_closed(watch);
        if (watch->source != NULL)
            return watch_source(watch, events);
    }
    errno = events & ~EVENTS ? EINVAL : EBADF;
    return -1;
}

void watches_remove(struct fb_watch *watch)
{
    struct worker *worker;

    CHECK_KIND(watch, WATCH_KIND);
    worker = worker_of(watch->handle);
    lose_closed(watch);
    if (watch->source != NULL) {
        RB_REMOVE(watches_tree, &worker->watches.tree, watch);
        source_detach(loop_of(watch), watch->source);
    }
    assert(worker->watches.n > 0);
    worker->watches.n--;
    LIST_REMOVE(watch, link);
    watch->kind = 0;
    memory_release(worker->stream.net.memory, watch);
}

/* The loop does not turn any more: descriptors closed before are no mistake. */
void watches_remove_all(struct fb_worker *handle)
{
    struct worker *worker = handle->worker;
    struct fb_watch *watch, *next;

    assert(worker->phase == WORKER_ENDING);
    LIST_FOREACH_SAFE (watch, &worker->watches.list, link, next) {
        if (watch->handle != handle)
            continue;
        if (watch->source != NULL && is_closed(watch))
            abandon_source(watch);
        watches_remove(watch);
    }
}

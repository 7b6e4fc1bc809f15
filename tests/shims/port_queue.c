/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue of an event port of the shim, and port_get(3C): epoll's events are moved to the queue,
 * and retrieved in order. An event not retrievable by the process, for lack of the descriptor,
 * stays there for others. */
#include "shims/port_private.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#define HARVEST 64

int port_fail(int error)
{
    errno = error;
    return -1;
}

/* ---- The queue; the port is locked ---- */

void port_enqueue(struct shared_port *shared, int i, int revents)
{
    struct item *item = &shared->items[i];

    item->revents = revents;
    if (item->queued)
        return;
    item->queued = true;
    item->next = NONE;
    item->previous = shared->last;
    if (shared->last == NONE)
        shared->first = i;
    else
        shared->items[shared->last].next = i;
    shared->last = i;
}

static void dequeue(struct shared_port *shared, int i)
{
    struct item *item = &shared->items[i];

    if (!item->queued)
        return;
    item->queued = false;
    if (item->previous == NONE)
        shared->first = item->next;
    else
        shared->items[item->previous].next = item->next;
    if (item->next == NONE)
        shared->last = item->previous;
    else
        shared->items[item->next].previous = item->previous;
}

void port_end(struct shared_port *shared, int i)
{
    dequeue(shared, i);
    shared->items[i].associated = false;
}

/* Whether the descriptor is, in the current process, the associated file. */
bool port_is_same_file(const struct item *item, int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_dev == item->device && status.st_ino == item->inode;
}

/* Whether the process can retrieve the event. An event of a descriptor closed by its owner is
 * dropped, with the association. */
static bool is_retrievable(struct shared_port *shared, int i)
{
    const struct item *item = &shared->items[i];

    if (i >= OBJECTS_MAX || port_is_same_file(item, i))
        return true;
    if (item->owner == getpid())
        port_end(shared, i);
    return false;
}

/* Counts the events retrievable by the process, up to `most`. */
static uint_t count_events(struct shared_port *shared, uint_t most)
{
    uint_t n = 0;
    int next;

    for (int i = shared->first; i != NONE && n < most; i = next) {
        next = shared->items[i].next;
        if (is_retrievable(shared, i))
            n++;
    }
    return n;
}

/* Moves at most `max` events to the list; returns how many. */
static uint_t retrieve(struct shared_port *shared, port_event_t list[], uint_t max)
{
    uint_t n = 0;
    int next;

    for (int i = shared->first; i != NONE && n < max; i = next) {
        struct item *item = &shared->items[i];
        bool is_sent = i >= OBJECTS_MAX;

        next = item->next;
        if (!is_retrievable(shared, i))
            continue;
        list[n++] = (port_event_t) {
            .portev_events = item->revents,
            .portev_source = is_sent ? PORT_SOURCE_USER : PORT_SOURCE_FD,
            .portev_object = is_sent ? 0 : (uintptr_t)i,
            .portev_user = item->user,
        };
        port_end(shared, i);
        if (is_sent) {
            item->next = shared->first_free;
            shared->first_free = i;
        }
    }
    return n;
}

/* ---- Retrieving ---- */

static void queue_event(struct shared_port *shared, const struct epoll_event *event)
{
    uint32_t fd = (uint32_t)event->data.u64, serial = (uint32_t)(event->data.u64 >> 32);

    if (event->data.u64 != BELL && shared->items[fd].associated &&
        shared->items[fd].serial == serial)
        port_enqueue(shared, (int)fd, (int)event->events);
}

/* Moves what epoll has into the queue, after a wait of at most `ms` (-1: for ever); -1 with errno.
 * Calls the kernel past the C library's function, which a test may define. */
static int harvest(struct port *port, int ms)
{
    struct epoll_event events[HARVEST];
    int n = (int)syscall(SYS_epoll_pwait, port->fd, events, HARVEST, ms, NULL, 8L);

    if (n > 0) {
        pthread_mutex_lock(&port->shared->lock);
        for (int i = 0; i < n; i++)
            queue_event(port->shared, &events[i]);
        pthread_mutex_unlock(&port->shared->lock);
    }
    return n;
}

static int harvest_all(struct port *port)
{
    int n;

    do
        n = harvest(port, 0);
    while (n == HARVEST);
    return n;
}

/* Takes the alert, or the events if there are as many as wanted, or `anyway`. False: none, and
 * the caller counts as waiting, until end_wait(). Further waiters are woken for the remaining
 * events. */
static bool take_events(
    struct port *port, port_event_t list[], uint_t max, uint_t *n, uint_t wanted, bool anyway)
{
    struct shared_port *shared = port->shared;
    bool taken = true, more;

    pthread_mutex_lock(&shared->lock);
    if (shared->alert) {
        list[0] = (port_event_t) {
            .portev_events = shared->alert_events,
            .portev_source = PORT_SOURCE_ALERT,
            .portev_user = shared->alert_user,
        };
        *n = 1;
    } else {
        taken = count_events(shared, wanted) >= wanted;
        if (taken || anyway)
            *n = retrieve(shared, list, max);
    }
    more = taken && shared->waiting_n > 0 && (shared->alert || shared->first != NONE);
    if (!taken && !anyway)
        shared->waiting_n++;
    pthread_mutex_unlock(&shared->lock);
    if (more)
        port_ring(port);
    return taken;
}

static void end_wait(struct shared_port *shared)
{
    pthread_mutex_lock(&shared->lock);
    shared->waiting_n--;
    pthread_mutex_unlock(&shared->lock);
}

/* Returns how long is left until the deadline, rounded up; -1 without one. */
static int ms_until(const struct timespec *deadline)
{
    struct timespec now;
    int64_t ns;

    if (deadline == NULL)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ns = (int64_t)(deadline->tv_sec - now.tv_sec) * 1000000000 + deadline->tv_nsec - now.tv_nsec;
    if (ns <= 0)
        return 0;
    return ns / 1000000 >= INT_MAX ? INT_MAX : (int)((ns + 999999) / 1000000);
}

/* On ETIME and EINTR the list may hold events, as many as *nget says. */
static int wait_for_events(struct port *port, port_event_t list[], uint_t max, uint_t *nget,
    const struct timespec *deadline)
{
    uint_t wanted = *nget;
    int error = harvest_all(port) == -1 ? errno : 0;

    while (!take_events(port, list, max, nget, wanted, false)) {
        int ms = ms_until(deadline);
        bool over = error != 0 || ms == 0;

        if (!over && harvest(port, ms) == -1)
            error = errno;
        end_wait(port->shared);
        if (!over)
            continue;
        *nget = 0;
        take_events(port, list, max, nget, wanted, true);
        return port_fail(error == 0 ? ETIME : error);
    }
    return 0;
}

static bool is_timeout(const struct timespec *timeout)
{
    return timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 && timeout->tv_nsec <= 1000000000;
}

int port_getn_shim(int fd, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout)
{
    struct port *port = port_find(fd);
    struct timespec deadline;

    if (port == NULL)
        return -1;
    if (nget == NULL || (max > 0 && (list == NULL || *nget > max)) ||
        (timeout != NULL && !is_timeout(timeout)))
        return port_fail(EINVAL);
    if (max == 0) {
        harvest_all(port);
        pthread_mutex_lock(&port->shared->lock);
        *nget = count_events(port->shared, UINT_MAX);
        pthread_mutex_unlock(&port->shared->lock);
        return 0;
    }
    if (timeout == NULL)
        return wait_for_events(port, list, max, nget, NULL);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout->tv_sec;
    deadline.tv_nsec += timeout->tv_nsec;
    return wait_for_events(port, list, max, nget, &deadline);
}

__attribute__((weak)) int port_getn(
    int fd, port_event_t list[], uint_t max, uint_t *nget, const timespec_t *timeout)
{
    return port_getn_shim(fd, list, max, nget, timeout);
}

int port_get(int fd, port_event_t *event, const timespec_t *timeout)
{
    port_event_t taken;
    uint_t n = 1;

    if (port_getn_shim(fd, &taken, 1, &n, timeout) == -1)
        return -1;
    *event = taken;
    return 0;
}

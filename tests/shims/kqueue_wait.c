/* SPDX-License-Identifier: BSD-2-Clause */
/* kevent(2): applies the changes in order, then takes the true conditions from the line, and waits
 * while there are none. As in FreeBSD a change's error is an event where there is room for the
 * event, and then nothing else is returned. */
#include "shims/kqueue.h"

#include "base/compiler.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns the number of errors and receipts, or -1 with errno. */
static int apply_changes(struct kqueue *queue, const struct kevent *changes, int change_n,
    struct kevent *events, int event_n)
{
    int n = 0;

    for (int i = 0; i < change_n; i++) {
        struct kevent change = changes[i]; /* a copy: changes and events may share a list */
        int error = kqueue_change(queue, &change);

        if (error == 0 && (change.flags & EV_RECEIPT) == 0)
            continue;
        if (n < event_n) {
            events[n] = change;
            events[n].flags = EV_ERROR;
            events[n++].data = error;
        } else if (error != 0) {
            errno = error;
            return -1;
        }
    }
    return n;
}

/* Activates the notes with events in an epoll. */
static void take_told(struct kqueue *queue, const struct epoll_event *told, int n, int filter)
{
    struct knote *note;
    uint64_t count;

    for (int i = 0; i < n; i++) {
        uintptr_t ident = (uintptr_t)(told[i].data.u64 & UINT32_MAX);

        switch (told[i].data.u64 >> 56) {
        case KQUEUE_DESCRIPTOR:
            note = kqueue_note(queue, ident, filter);
            if (note != NULL)
                kqueue_activate(queue, note);
            break;
        case KQUEUE_WAKER:
            if (read(queue->waker, &count, sizeof(count)) == -1)
                continue;
            break;
        case KQUEUE_OWN:
            TAILQ_FOREACH (note, &queue->others, link) {
                if (note->fd != (int)ident)
                    continue;
                note->count += note->kept.filter == EVFILT_SIGNAL;
                kqueue_activate(queue, note);
            }
            break;
        default:
            break;
        }
    }
}

static void take_writers(struct kqueue *queue)
{
    struct epoll_event told[64];
    int n;

    do {
        n = epoll_wait(queue->writers, told, countof(told), 0);
        take_told(queue, told, n, EVFILT_WRITE);
    } while (n == (int)countof(told));
}

/* Takes the notes with a true condition; a note still active goes to the line's end. */
static int collect_events(struct kqueue *queue, struct kevent *events, int event_n)
{
    struct knote *note, *last = TAILQ_LAST(&queue->line, knote_list);
    int n = 0;
    bool more = last != NULL;

    while (more && n < event_n) {
        note = TAILQ_FIRST(&queue->line);
        more = note != last;
        TAILQ_REMOVE(&queue->line, note, line);
        note->active = false;
        if (!kqueue_filter_run(note, &events[n]))
            continue;
        n++;
        if (note->kept.flags & EV_ONESHOT)
            kqueue_drop(queue, note);
        else if (note->kept.flags & EV_DISPATCH)
            note->disabled = true;
        else if ((note->kept.flags & EV_CLEAR) == 0)
            kqueue_activate(queue, note);
    }
    return n;
}

/* Waits, without the lock, for something to report; -1 with errno. */
static int await(struct kqueue *queue, int timeout)
{
    struct epoll_event told[64];
    int n, fd = queue->fd;

    kqueue_unlock();
    n = epoll_wait(fd, told, countof(told), timeout);
    kqueue_lock();
    if (n == -1)
        return -1;
    take_told(queue, told, n, EVFILT_READ);
    take_writers(queue);
    return 0;
}

static int ms_until(int64_t deadline)
{
    int64_t left = deadline - now_ns();

    return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

static int wait_for_events(
    struct kqueue *queue, struct kevent *events, int event_n, const struct timespec *timeout)
{
    int64_t deadline = 0;
    int n = 0;

    if (timeout != NULL)
        deadline = now_ns() + (int64_t)timeout->tv_sec * 1000000000 + timeout->tv_nsec;
    for (;;) {
        int ms = timeout == NULL ? -1 : ms_until(deadline);

        if (await(queue, TAILQ_EMPTY(&queue->line) ? ms : 0) == -1)
            return -1;
        n = collect_events(queue, events, event_n);
        if (n > 0 || ms == 0)
            return n;
    }
}

int kqueue_wait(int kq, const struct kevent *changes, int change_n, struct kevent *events,
    int event_n, const struct timespec *timeout)
{
    struct kqueue *queue;
    int n, error;

    kqueue_lock();
    queue = kqueue_find(kq);
    if (queue == NULL) {
        kqueue_unlock();
        errno = EBADF;
        return -1;
    }
    n = apply_changes(queue, changes, change_n, events, event_n);
    if (n == 0 && event_n > 0)
        n = wait_for_events(queue, events, event_n, timeout);
    error = errno;
    kqueue_unlock();
    errno = error;
    return n;
}

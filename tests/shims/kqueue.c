/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of the shim, with notes. A queue belongs to the creating process: a child of fork()
 * has neither queue nor descriptor. Closing a descriptor drops all notes of the descriptor. */
#include "shims/kqueue.h"

#include "shims/closing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STAYING (EV_ONESHOT | EV_CLEAR | EV_DISPATCH)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, kqueue) queues = TAILQ_HEAD_INITIALIZER(queues);

void kqueue_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kqueue_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static bool is_of_fd(int filter)
{
    return filter == EVFILT_READ || filter == EVFILT_WRITE;
}

static int close_really(int fd)
{
    return (int)syscall(SYS_close, fd);
}

static void destroy_queue(struct kqueue *queue)
{
    struct knote *note;

    for (size_t i = 0; i < 2; i++) {
        for (size_t fd = 0; fd < queue->fd_n; fd++)
            free(queue->of_fd[i][fd]);
        free(queue->of_fd[i]);
    }
    while ((note = TAILQ_FIRST(&queue->others)) != NULL) {
        TAILQ_REMOVE(&queue->others, note, link);
        if (note->fd != -1)
            close_really(note->fd);
        free(note);
    }
    close_really(queue->writers);
    close_really(queue->waker);
    TAILQ_REMOVE(&queues, queue, link);
    free(queue);
}

/* In a child of fork(): the descriptors of queues are not inherited. */
static void forget_queues(void)
{
    struct kqueue *queue;

    while ((queue = TAILQ_FIRST(&queues)) != NULL) {
        close_really(queue->fd);
        destroy_queue(queue);
    }
    kqueue_unlock();
}

static void forget_in(struct kqueue *queue, unsigned first, unsigned last)
{
    for (size_t fd = first; fd < queue->fd_n && fd <= last; fd++)
        for (int i = 0; i < 2; i++)
            if (queue->of_fd[i][fd] != NULL)
                kqueue_drop(queue, queue->of_fd[i][fd]);
}

static void forget_descriptors(unsigned first, unsigned last)
{
    struct kqueue *queue, *next;

    if (TAILQ_EMPTY(&queues))
        return;
    kqueue_lock();
    for (queue = TAILQ_FIRST(&queues); queue != NULL; queue = next) {
        next = TAILQ_NEXT(queue, link);
        if ((unsigned)queue->fd >= first && (unsigned)queue->fd <= last)
            destroy_queue(queue);
        else
            forget_in(queue, first, last);
    }
    kqueue_unlock();
}

static void follow_forks(void)
{
    pthread_atfork(kqueue_lock, kqueue_unlock, forget_queues);
}

static int watch_inner(struct kqueue *queue, int fd, int kind)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = KQUEUE_DATA(kind, 0) };

    return fd == -1 ? -1 : epoll_ctl(queue->fd, EPOLL_CTL_ADD, fd, &event);
}

int kqueue(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct kqueue *queue = calloc(1, sizeof(*queue));

    if (queue == NULL)
        return -1;
    pthread_once(&once, follow_forks);
    closing_tell(forget_descriptors);
    TAILQ_INIT(&queue->others);
    TAILQ_INIT(&queue->line);
    queue->pid = getpid();
    queue->fd = epoll_create1(EPOLL_CLOEXEC);
    queue->writers = epoll_create1(EPOLL_CLOEXEC);
    queue->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (queue->fd == -1 || watch_inner(queue, queue->writers, KQUEUE_WRITERS) == -1 ||
        watch_inner(queue, queue->waker, KQUEUE_WAKER) == -1) {
        int error = errno;

        close_really(queue->fd);
        close_really(queue->writers);
        close_really(queue->waker);
        free(queue);
        errno = error;
        return -1;
    }
    kqueue_lock();
    TAILQ_INSERT_TAIL(&queues, queue, link);
    kqueue_unlock();
    return queue->fd;
}

struct kqueue *kqueue_find(int fd)
{
    struct kqueue *queue;

    TAILQ_FOREACH (queue, &queues, link)
        if (queue->fd == fd)
            return queue->pid == getpid() ? queue : NULL;
    return NULL;
}

struct knote *kqueue_note(const struct kqueue *queue, uintptr_t ident, int filter)
{
    struct knote *note;

    if (is_of_fd(filter))
        return ident < queue->fd_n ? queue->of_fd[filter == EVFILT_WRITE][ident] : NULL;
    TAILQ_FOREACH (note, &queue->others, link)
        if (note->kept.ident == ident && note->kept.filter == filter)
            return note;
    return NULL;
}

/* Makes the tables large enough for the descriptor. */
static int grow_tables(struct kqueue *queue, size_t fd)
{
    size_t n = queue->fd_n < 64 ? 64 : queue->fd_n;

    while (n <= fd)
        n *= 2;
    for (int i = 0; i < 2 && n != queue->fd_n; i++) {
        struct knote **grown = realloc(queue->of_fd[i], n * sizeof(struct knote *));

        if (grown == NULL)
            return ENOMEM;
        memset(grown + queue->fd_n, 0, (n - queue->fd_n) * sizeof(struct knote *));
        queue->of_fd[i] = grown;
    }
    queue->fd_n = n;
    return 0;
}

static int add_note(struct kqueue *queue, const struct kevent *change, struct knote **added)
{
    struct knote *note;
    int error = is_of_fd(change->filter) ? grow_tables(queue, change->ident) : 0;

    if (error != 0)
        return error;
    note = *added = calloc(1, sizeof(*note));
    if (note == NULL)
        return ENOMEM;
    note->kept = *change;
    note->kept.flags &= STAYING;
    note->fd = -1;
    error = kqueue_filter_start(queue, note);
    if (error != 0)
        free(note);
    else if (is_of_fd(change->filter))
        queue->of_fd[change->filter == EVFILT_WRITE][change->ident] = note;
    else
        TAILQ_INSERT_TAIL(&queue->others, note, link);
    return error;
}

static void leave_line(struct kqueue *queue, struct knote *note)
{
    if (note->active)
        TAILQ_REMOVE(&queue->line, note, line);
    note->active = false;
}

void kqueue_drop(struct kqueue *queue, struct knote *note)
{
    leave_line(queue, note);
    kqueue_filter_stop(queue, note);
    if (is_of_fd(note->kept.filter))
        queue->of_fd[note->kept.filter == EVFILT_WRITE][note->kept.ident] = NULL;
    else
        TAILQ_REMOVE(&queue->others, note, link);
    free(note);
}

void kqueue_activate(struct kqueue *queue, struct knote *note)
{
    if (note->active || note->disabled)
        return;
    note->active = true;
    TAILQ_INSERT_TAIL(&queue->line, note, line);
}

static bool is_known(int filter)
{
    return is_of_fd(filter) || filter == EVFILT_SIGNAL || filter == EVFILT_TIMER ||
           filter == EVFILT_USER;
}

int kqueue_change(struct kqueue *queue, const struct kevent *change)
{
    struct knote *note;
    int error = 0;

    if (!is_known(change->filter))
        return EINVAL;
    if (is_of_fd(change->filter) &&
        (change->ident > INT32_MAX || fcntl((int)change->ident, F_GETFD) == -1))
        return EBADF;
    note = kqueue_note(queue, change->ident, change->filter);
    if (note == NULL && (change->flags & EV_ADD) == 0)
        return ENOENT;
    if (change->flags & EV_DELETE) {
        if (note != NULL)
            kqueue_drop(queue, note);
        return 0;
    }
    if (note == NULL)
        error = add_note(queue, change, &note);
    else
        error = kqueue_filter_touch(queue, note, change);
    if (error != 0)
        return error;
    note->kept.udata = change->udata;
    if (change->flags & (EV_ADD | EV_ENABLE))
        note->disabled = false;
    if (change->flags & EV_DISABLE) {
        note->disabled = true;
        leave_line(queue, note);
    }
    kqueue_activate(queue, note); /* the filter is run when the note's turn comes */
    return 0;
}

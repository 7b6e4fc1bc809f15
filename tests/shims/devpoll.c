/* SPDX-License-Identifier: BSD-2-Clause */
/* The /dev/poll driver of illumos for tests, to the manual page poll(4D). A handle has a set of
 * descriptors, asked by poll(2): the rules of a set are poll's, down to closed descriptors
 * (POLLNVAL) or reused ones, unknown to epoll(7). A handle is the writing end of an unread pipe, so
 * that polling the handle reports POLLERR, as in the manual. The handle serves only its opener: in
 * a child of fork() every operation fails with EACCES. */
#include "shims/closing.h"

#include <sys/devpoll.h>

#undef open
#undef write
#undef ioctl

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

struct handle {
    struct handle *next;
    int fd;
    pid_t owner;
    struct pollfd *set; /* n of them, room for room_n */
    size_t n, room_n;
    int *places; /* by descriptor: place in the set, from 1; 0: none */
    size_t place_n;
    size_t begin; /* start of the next search: no descriptor starves the rest */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct handle *handles;

/* ---- Handles ---- */

static struct handle *find_handle(int fd)
{
    struct handle *handle;

    pthread_mutex_lock(&lock);
    for (handle = handles; handle != NULL && handle->fd != fd; handle = handle->next)
        ;
    pthread_mutex_unlock(&lock);
    return handle;
}

/* Forgets handles: the process closes the descriptors from first to last. */
static void forget_closed(unsigned first, unsigned last)
{
    struct handle **link = &handles, *handle;

    pthread_mutex_lock(&lock);
    while ((handle = *link) != NULL) {
        if ((unsigned)handle->fd < first || (unsigned)handle->fd > last) {
            link = &handle->next;
            continue;
        }
        *link = handle->next;
        free(handle->set);
        free(handle->places);
        free(handle);
    }
    pthread_mutex_unlock(&lock);
}

static int open_handle(int flags)
{
    struct handle *handle = calloc(1, sizeof(*handle));
    int fds[2];

    if (handle == NULL)
        return -1;
    if (pipe2(fds, (flags & O_CLOEXEC) | O_NONBLOCK) == -1) {
        free(handle);
        return -1;
    }
    close(fds[0]);
    closing_tell(forget_closed);
    handle->fd = fds[1];
    handle->owner = getpid();
    pthread_mutex_lock(&lock);
    handle->next = handles;
    handles = handle;
    pthread_mutex_unlock(&lock);
    return handle->fd;
}

int devpoll_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode = 0;

    if (strcmp(path, "/dev/poll") == 0)
        return open_handle(flags);
    va_start(args, flags);
    if (flags & O_CREAT)
        mode = va_arg(args, mode_t);
    va_end(args);
    return open(path, flags, mode);
}

/* ---- The set ---- */

static size_t descriptor_limit(void)
{
    struct rlimit limits;

    return getrlimit(RLIMIT_NOFILE, &limits) == -1 || limits.rlim_cur > INT_MAX
               ? INT_MAX
               : (size_t)limits.rlim_cur;
}

static bool make_room(struct handle *handle, int fd)
{
    if ((size_t)fd >= handle->place_n) {
        size_t n = 2 * (size_t)fd + 64;
        int *places = realloc(handle->places, n * sizeof(*places));

        if (places == NULL)
            return false;
        memset(places + handle->place_n, 0, (n - handle->place_n) * sizeof(*places));
        handle->places = places;
        handle->place_n = n;
    }
    if (handle->n == handle->room_n) {
        size_t n = 2 * handle->room_n + 64;
        struct pollfd *set = realloc(handle->set, n * sizeof(*set));

        if (set == NULL)
            return false;
        handle->set = set;
        handle->room_n = n;
    }
    return true;
}

static struct pollfd *find_entry(struct handle *handle, int fd)
{
    if (fd < 0 || (size_t)fd >= handle->place_n || handle->places[fd] == 0)
        return NULL;
    return &handle->set[handle->places[fd] - 1];
}

static void remove_entry(struct handle *handle, struct pollfd *entry)
{
    struct pollfd last = handle->set[--handle->n];

    handle->places[last.fd] = handle->places[entry->fd];
    handle->places[entry->fd] = 0;
    *entry = last;
}

/* Carries out a written entry. Impossible descriptors are not in the set, and removing an absent
 * descriptor is no mistake. */
static bool change_set(struct handle *handle, const struct pollfd *change)
{
    struct pollfd *entry = find_entry(handle, change->fd);

    if (change->fd < 0 || (size_t)change->fd >= descriptor_limit())
        return true;
    if (change->events == POLLREMOVE) {
        if (entry != NULL)
            remove_entry(handle, entry);
        return true;
    }
    if (entry != NULL) {
        entry->events |= change->events;
        return true;
    }
    if (!make_room(handle, change->fd))
        return false;
    handle->set[handle->n++] = (struct pollfd) { .fd = change->fd, .events = change->events };
    handle->places[change->fd] = (int)handle->n;
    return true;
}

ssize_t devpoll_write_shim(int fd, const void *p, size_t n)
{
    struct handle *handle = find_handle(fd);
    const struct pollfd *changes = p;
    size_t count = n / sizeof(*changes);

    if (handle == NULL)
        return write(fd, p, n);
    if (handle->owner != getpid()) {
        errno = EACCES;
        return -1;
    }
    if (n % sizeof(*changes) != 0 || count > descriptor_limit()) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        if (!change_set(handle, &changes[i])) {
            errno = ENOMEM;
            return -1;
        }
    return (ssize_t)n;
}

/* ---- Asking it ---- */

/* Calls poll(2) past the C library's function, which a test may define. */
static int ask(struct pollfd *set, size_t n, int timeout)
{
    long limit[2] = { timeout / 1000, timeout % 1000 * 1000000L };

    return (int)syscall(SYS_ppoll, set, n, timeout < 0 ? NULL : limit, NULL, 8);
}

static int poll_set(struct handle *handle, struct dvpoll *wait)
{
    size_t found = 0, begin;
    int ready;

    if (wait->dp_nfds >= descriptor_limit()) {
        errno = EINVAL;
        return -1;
    }
    ready = ask(handle->set, handle->n, wait->dp_timeout);
    if (ready <= 0 || wait->dp_nfds == 0)
        return ready == -1 ? -1 : 0;
    if (wait->dp_fds == NULL) {
        errno = EFAULT;
        return -1;
    }
    begin = handle->begin;
    for (size_t i = 0; i < handle->n && found < wait->dp_nfds; i++) {
        size_t place = (begin + i) % handle->n;

        if (handle->set[place].revents == 0)
            continue;
        wait->dp_fds[found++] = handle->set[place];
        handle->begin = place + 1;
    }
    return (int)found;
}

static int is_polled(struct handle *handle, struct pollfd *asked)
{
    const struct pollfd *entry = find_entry(handle, asked->fd);

    if (entry == NULL)
        return 0;
    asked->events = 0;
    asked->revents = entry->events;
    return 1;
}

int devpoll_ioctl_shim(int fd, unsigned long request, void *arg)
{
    struct handle *handle = find_handle(fd);

    if (handle == NULL)
        return ioctl(fd, request, arg);
    if (handle->owner != getpid()) {
        errno = EACCES;
        return -1;
    }
    if (arg == NULL) {
        errno = EFAULT;
        return -1;
    }
    switch (request) {
    case DP_POLL:
        return poll_set(handle, arg);
    case DP_ISPOLLED:
        return is_polled(handle, arg);
    default:
        errno = EINVAL;
        return -1;
    }
}

__attribute__((weak)) int devpoll_ioctl(int fd, unsigned long request, void *arg)
{
    return devpoll_ioctl_shim(fd, request, arg);
}

__attribute__((weak)) ssize_t devpoll_write(int fd, const void *p, size_t n)
{
    return devpoll_write_shim(fd, p, n);
}

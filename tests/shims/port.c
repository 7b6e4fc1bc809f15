/* SPDX-License-Identifier: BSD-2-Clause */
/* Event ports of illumos for tests, to the manual pages port_create(3C), port_associate(3C),
 * port_send(3C) and port_alert(3C), over epoll(7); port_queue.c has port_get(3C). A port's
 * descriptor is an epoll set with one-shot associations; events stand in a queue until retrieved.
 * The kernel's events of an ended association (of a closed descriptor, or associated anew) are
 * recognized by a serial number, and dropped. */
#include "shims/closing.h"
#include "shims/port_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#define POLL_EVENTS (POLLIN | POLLPRI | POLLOUT | POLLRDNORM | POLLRDBAND | POLLWRNORM | POLLWRBAND)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct port *ports;

/* ---- Ports ---- */

struct port *port_find(int fd)
{
    struct port *port;

    pthread_mutex_lock(&list_lock);
    for (port = ports; port != NULL && port->fd != fd; port = port->next)
        ;
    pthread_mutex_unlock(&list_lock);
    if (port == NULL)
        errno = fcntl(fd, F_GETFD) == -1 ? EBADF : EBADFD;
    return port;
}

/* Ends the process's associations of the descriptors from first to last. */
static void end_own(struct shared_port *shared, unsigned first, unsigned last)
{
    pthread_mutex_lock(&shared->lock);
    for (unsigned i = first; i < (unsigned)shared->object_n && i <= last; i++)
        if (shared->items[i].associated && shared->items[i].owner == getpid())
            port_end(shared, (int)i);
    pthread_mutex_unlock(&shared->lock);
}

/* Forgets the descriptors closed by the process: associations of the descriptors from first to
 * last, and closed ports with all their associations from the process. */
static void forget_closed(unsigned first, unsigned last)
{
    struct port **link = &ports, *closed = NULL, *port;

    pthread_mutex_lock(&list_lock);
    while ((port = *link) != NULL) {
        bool is_closed = (unsigned)port->fd >= first && (unsigned)port->fd <= last;

        end_own(port->shared, is_closed ? 0 : first, is_closed ? OBJECTS_MAX : last);
        if ((unsigned)port->bell >= first && (unsigned)port->bell <= last)
            port->bell = -1;
        if (is_closed) {
            *link = port->next;
            port->next = closed;
            closed = port;
        } else {
            link = &port->next;
        }
    }
    pthread_mutex_unlock(&list_lock);
    while ((port = closed) != NULL) {
        closed = port->next;
        munmap(port->shared, sizeof(*port->shared));
        if (port->bell != -1)
            close(port->bell);
        free(port);
    }
}

static struct shared_port *make_shared(void)
{
    pthread_mutexattr_t attributes;
    struct shared_port *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (shared == MAP_FAILED)
        return NULL;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    shared->first = shared->last = NONE;
    shared->first_free = NONE;
    return shared;
}

int port_create(void)
{
    struct port *port = calloc(1, sizeof(*port));

    if (port == NULL)
        return -1;
    port->fd = epoll_create1(0);
    port->bell = -1;
    port->shared = make_shared();
    if (port->fd == -1 || port->shared == NULL) {
        if (port->fd != -1)
            close(port->fd);
        if (port->shared != NULL)
            munmap(port->shared, sizeof(*port->shared));
        free(port);
        errno = EMFILE;
        return -1;
    }
    closing_tell(forget_closed);
    pthread_mutex_lock(&list_lock);
    port->next = ports;
    ports = port;
    pthread_mutex_unlock(&list_lock);
    return port->fd;
}

/* Makes the bell at the first ring: most ports have events of descriptors alone. Children inherit
 * the bell and ring the same. */
static bool has_bell(struct port *port)
{
    struct epoll_event bell = { .events = EPOLLIN | EPOLLET, .data.u64 = BELL };

    pthread_mutex_lock(&list_lock);
    if (port->bell == -1) {
        port->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (port->bell != -1)
            epoll_ctl(port->fd, EPOLL_CTL_ADD, port->bell, &bell);
    }
    pthread_mutex_unlock(&list_lock);
    return port->bell != -1;
}

void port_ring(struct port *port)
{
    static const uint64_t one = 1;

    if (!has_bell(port))
        return;
    while (write(port->bell, &one, sizeof(one)) == -1 && errno == EINTR)
        ;
}

/* ---- Associations ---- */

/* Watches the descriptor once by epoll. A file that has no poll() is always ready. */
static int watch_once(struct port *port, int fd, const struct item *item)
{
    struct epoll_event event = {
        .events = (uint32_t)(item->events & POLL_EVENTS) | EPOLLONESHOT,
        .data.u64 = (uint64_t)item->serial << 32 | (uint32_t)fd,
    };
    int result = epoll_ctl(port->fd, EPOLL_CTL_MOD, fd, &event);

    if (result == -1 && errno == ENOENT)
        result = epoll_ctl(port->fd, EPOLL_CTL_ADD, fd, &event);
    if (result == 0)
        return 0;
    if (errno == EPERM) {
        port_enqueue(port->shared, fd, item->events & (POLLIN | POLLOUT));
        if (port->shared->waiting_n > 0)
            port_ring(port);
        return 0;
    }
    return port_fail(errno == ENOSPC ? EAGAIN : errno == EBADF ? EBADFD : errno);
}

static int associate(struct port *port, int fd, int events, void *user, const struct stat *status)
{
    struct shared_port *shared = port->shared;
    struct item *item = &shared->items[fd];

    if (!item->associated || item->device != status->st_dev || item->inode != status->st_ino)
        item->owner = getpid();
    port_end(shared, fd);
    item->associated = true;
    item->device = status->st_dev;
    item->inode = status->st_ino;
    item->serial = ++shared->serial;
    item->events = events;
    item->user = user;
    if (fd >= shared->object_n)
        shared->object_n = fd + 1;
    if (watch_once(port, fd, item) == 0)
        return 0;
    item->associated = false;
    return -1;
}

int port_associate_shim(int fd, int source, uintptr_t object, int events, void *user)
{
    struct port *port = port_find(fd);
    struct stat status;
    int result;

    if (port == NULL)
        return port_fail(EBADF);
    if (source != PORT_SOURCE_FD)
        return port_fail(EINVAL);
    if (object >= OBJECTS_MAX || fstat((int)object, &status) == -1)
        return port_fail(EBADFD);
    pthread_mutex_lock(&port->shared->lock);
    result = associate(port, (int)object, events, user, &status);
    pthread_mutex_unlock(&port->shared->lock);
    return result;
}

static int dissociate(struct port *port, int fd)
{
    struct shared_port *shared = port->shared;
    struct item *item = &shared->items[fd];
    struct epoll_event never = { .events = EPOLLONESHOT, .data.u64 = (uint32_t)fd };

    if (!item->associated || !port_is_same_file(item, fd))
        return port_fail(ENOENT);
    if (item->owner != getpid())
        return port_fail(EACCES);
    port_end(shared, fd);
    epoll_ctl(port->fd, EPOLL_CTL_DEL, fd, &never);
    return 0;
}

int port_dissociate_shim(int fd, int source, uintptr_t object)
{
    struct port *port = port_find(fd);
    int result;

    if (port == NULL)
        return port_fail(EBADF);
    if (source != PORT_SOURCE_FD)
        return port_fail(EINVAL);
    if (object >= OBJECTS_MAX || fcntl((int)object, F_GETFD) == -1)
        return port_fail(EBADFD);
    pthread_mutex_lock(&port->shared->lock);
    result = dissociate(port, (int)object);
    pthread_mutex_unlock(&port->shared->lock);
    return result;
}

/* ---- Events of the program's own ---- */

int port_send_shim(int fd, int events, void *user)
{
    struct port *port = port_find(fd);
    struct shared_port *shared;
    bool waited_for;
    int i;

    if (port == NULL)
        return -1;
    shared = port->shared;
    pthread_mutex_lock(&shared->lock);
    i = shared->first_free;
    if (i != NONE)
        shared->first_free = shared->items[i].next;
    else if (shared->sent_n < SENT_MAX)
        i = OBJECTS_MAX + shared->sent_n++;
    if (i != NONE) {
        shared->items[i].user = user;
        port_enqueue(shared, i, events);
    }
    waited_for = shared->waiting_n > 0;
    pthread_mutex_unlock(&shared->lock);
    if (i == NONE)
        return port_fail(EAGAIN);
    if (waited_for)
        port_ring(port);
    return 0;
}

int port_sendn(int fds[], int errors[], uint_t n, int events, void *user)
{
    uint_t sent = 0;

    if (n == 0)
        return port_fail(EINVAL);
    for (uint_t i = 0; i < n; i++) {
        errors[i] = port_send(fds[i], events, user) == -1 ? errno : 0;
        sent += errors[i] == 0;
    }
    return (int)sent;
}

int port_alert(int fd, int flags, int events, void *user)
{
    struct port *port = port_find(fd);
    bool busy, waited_for;

    if (port == NULL)
        return -1;
    if (flags != PORT_ALERT_SET && flags != PORT_ALERT_UPDATE)
        return port_fail(EINVAL);
    pthread_mutex_lock(&port->shared->lock);
    busy = flags == PORT_ALERT_UPDATE && events != 0 && port->shared->alert;
    if (!busy) {
        port->shared->alert = events != 0;
        port->shared->alert_events = events;
        port->shared->alert_user = user;
    }
    waited_for = port->shared->waiting_n > 0;
    pthread_mutex_unlock(&port->shared->lock);
    if (busy)
        return port_fail(EBUSY);
    if (waited_for)
        port_ring(port);
    return 0;
}

/* ---- Names that a test may define itself ---- */

__attribute__((weak)) int port_associate(
    int fd, int source, uintptr_t object, int events, void *user)
{
    return port_associate_shim(fd, source, object, events, user);
}

__attribute__((weak)) int port_dissociate(int fd, int source, uintptr_t object)
{
    return port_dissociate_shim(fd, source, object);
}

__attribute__((weak)) int port_send(int fd, int events, void *user)
{
    return port_send_shim(fd, events, user);
}

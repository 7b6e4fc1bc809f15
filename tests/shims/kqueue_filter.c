/* SPDX-License-Identifier: BSD-2-Clause */
/* The filters of the shim: the trigger of a change, and the condition. Facts missing in Linux are
 * guessed: an error of a socket, only readable by taking it from the owner, and the number of
 * clients waiting at a unix listener. EVFILT_SIGNAL sees blocked signals, and no signals taken at
 * once by a handler. */
#include "shims/kqueue.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <linux/sockios.h>

static int watch_descriptor(struct kqueue *queue, struct knote *note)
{
    bool writes = note->kept.filter == EVFILT_WRITE;
    int fd = (int)note->kept.ident, epoll = writes ? queue->writers : queue->fd;
    struct epoll_event event = {
        .events = (writes ? EPOLLOUT : EPOLLIN | EPOLLRDHUP) | EPOLLET,
        .data.u64 = KQUEUE_DATA(KQUEUE_DESCRIPTOR, fd),
    };

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    if (errno == EEXIST && epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0)
        return 0;
    if (errno != EPERM)
        return errno;
    note->always = true;
    return 0;
}

static int64_t nanoseconds_of(const struct kevent *change)
{
    if (change->fflags & NOTE_SECONDS)
        return change->data * 1000000000;
    if (change->fflags & NOTE_USECONDS)
        return change->data * 1000;
    return change->fflags & NOTE_NSECONDS ? change->data : change->data * 1000000;
}

static int set_timer(struct knote *note)
{
    int64_t ns = nanoseconds_of(&note->kept);
    struct timespec time = { ns / 1000000000, ns % 1000000000 };
    struct itimerspec spec = { .it_value = time };

    if (ns <= 0)
        return EINVAL;
    if ((note->kept.flags & EV_ONESHOT) == 0)
        spec.it_interval = time;
    return timerfd_settime(note->fd, 0, &spec, NULL) == -1 ? errno : 0;
}

/* Watches the note's own descriptor, just made. */
static int watch_own(struct kqueue *queue, struct knote *note, uint32_t events)
{
    struct epoll_event event = { .events = events };
    int error;

    if (note->fd == -1)
        return errno;
    event.data.u64 = KQUEUE_DATA(KQUEUE_OWN, note->fd);
    error = note->kept.filter == EVFILT_TIMER ? set_timer(note) : 0;
    if (error == 0 && epoll_ctl(queue->fd, EPOLL_CTL_ADD, note->fd, &event) == -1)
        error = errno;
    if (error != 0)
        syscall(SYS_close, note->fd);
    return error;
}

int kqueue_filter_start(struct kqueue *queue, struct knote *note)
{
    sigset_t set;

    switch (note->kept.filter) {
    case EVFILT_TIMER:
        note->kept.flags |= EV_CLEAR;
        note->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        return watch_own(queue, note, EPOLLIN);
    case EVFILT_SIGNAL:
        note->kept.flags |= EV_CLEAR;
        sigemptyset(&set);
        if (sigaddset(&set, (int)note->kept.ident) == -1)
            return EINVAL;
        note->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return watch_own(queue, note, EPOLLIN | EPOLLET);
    case EVFILT_USER:
        return kqueue_filter_touch(queue, note, &note->kept);
    default:
        return watch_descriptor(queue, note);
    }
}

void kqueue_filter_stop(struct kqueue *queue, struct knote *note)
{
    int fd = (int)note->kept.ident;

    if (note->fd != -1)
        syscall(SYS_close, note->fd);
    else if (note->kept.filter == EVFILT_READ)
        epoll_ctl(queue->fd, EPOLL_CTL_DEL, fd, NULL);
    else if (note->kept.filter == EVFILT_WRITE)
        epoll_ctl(queue->writers, EPOLL_CTL_DEL, fd, NULL);
}

int kqueue_filter_touch(struct kqueue *queue, struct knote *note, const struct kevent *change)
{
    static const uint64_t one = 1;

    if (note->kept.filter == EVFILT_USER && (change->fflags & NOTE_TRIGGER)) {
        note->count = 1;
        if (write(queue->waker, &one, sizeof(one)) == -1 && errno != EAGAIN)
            return errno;
    } else if (note->kept.filter == EVFILT_TIMER && (change->flags & EV_ADD)) {
        note->kept.fflags = change->fflags;
        note->kept.data = change->data;
        return set_timer(note);
    }
    return 0;
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t length = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 &&
           protocol == IPPROTO_TCP;
}

static struct tcp_info tcp_of(int fd)
{
    struct tcp_info info = { .tcpi_state = 0 };
    socklen_t length = sizeof(info);

    if (!is_tcp(fd) || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == -1)
        info.tcpi_state = 0;
    return info;
}

static bool listens(int fd)
{
    int on = 0;
    socklen_t length = sizeof(on);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &length) == 0 && on != 0;
}

/* A connection never established was refused. */
static unsigned error_of(int fd)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);

    if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 || errno != ENOTCONN)
        return ECONNRESET;
    return tcp_of(fd).tcpi_rtt == 0 ? ECONNREFUSED : ECONNRESET;
}

static void note_ends(int fd, short revents, struct kevent *event)
{
    if (revents & (POLLRDHUP | POLLHUP | POLLERR))
        event->flags |= EV_EOF;
    if (revents & POLLERR)
        event->fflags = error_of(fd);
}

static bool run_read(struct knote *note, struct kevent *event)
{
    int fd = (int)note->kept.ident, bytes = 0;
    struct pollfd entry = { .fd = fd, .events = POLLIN | POLLRDHUP };

    if (note->always)
        return true;
    if (poll(&entry, 1, 0) != 1 || (entry.revents & POLLNVAL))
        return false;
    if (listens(fd)) {
        event->data = tcp_of(fd).tcpi_unacked; /* a listener's backlog */
        event->data += event->data == 0;
        return (entry.revents & POLLIN) != 0;
    }
    if (ioctl(fd, FIONREAD, &bytes) == 0)
        event->data = bytes;
    else
        event->data = 1;
    note_ends(fd, entry.revents, event);
    return true;
}

/* Whether the end has shut down the sending half. */
static bool has_shut(int fd)
{
    switch (tcp_of(fd).tcpi_state) {
    case TCP_FIN_WAIT1:
    case TCP_FIN_WAIT2:
    case TCP_CLOSING:
    case TCP_LAST_ACK:
    case TCP_TIME_WAIT:
        return true;
    default:
        return false;
    }
}

static bool run_write(struct knote *note, struct kevent *event)
{
    int fd = (int)note->kept.ident, queued = 0, size = 0;
    socklen_t length = sizeof(size);
    struct pollfd entry = { .fd = fd, .events = POLLOUT };

    if (note->always)
        return true;
    if (poll(&entry, 1, 0) != 1 || (entry.revents & POLLNVAL))
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0 &&
        ioctl(fd, SIOCOUTQ, &queued) == 0 && size > queued)
        event->data = size - queued;
    note_ends(fd, entry.revents, event);
    if (has_shut(fd))
        event->flags |= EV_EOF;
    return true;
}

static bool run_own(struct knote *note, struct kevent *event)
{
    uint64_t more = 0;

    if (note->kept.filter == EVFILT_TIMER && read(note->fd, &more, sizeof(more)) > 0)
        note->count += more;
    event->data = (int64_t)note->count;
    if (note->count == 0)
        return false;
    if (note->kept.flags & (EV_CLEAR | EV_ONESHOT))
        note->count = 0;
    return true;
}

bool kqueue_filter_run(struct knote *note, struct kevent *event)
{
    *event = note->kept;
    event->fflags = 0;
    event->data = 0;
    switch (note->kept.filter) {
    case EVFILT_READ:
        return run_read(note, event);
    case EVFILT_WRITE:
        return run_write(note, event);
    default:
        return run_own(note, event);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets that were shut down: every process that has one can do that to all. A TCP
 * socket keeps its address and can listen again; a unix socket cannot, and is replaced, so that its
 * other holders have to be given the new one. Nothing here decides when. */
#include "base/descriptor.h"
#include "net/listener_set.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* Without the flag the system does not tell that a peer's half has ended: a socket can only hang
 * up then. */
#ifndef POLLRDHUP
#define POLLRDHUP 0
#endif

/* A listener that cannot listen again is tried at least each time of so many. */
#define TRIES_MOST 64

bool listener_is_broken(int fd)
{
    struct pollfd polled = { .fd = fd, .events = POLLRDHUP };

    assert(fd >= 0);
    return poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLRDHUP)) != 0;
}

/* Makes the socket listen; -1 with the call that has failed, or NULL after a line. A port that the
 * kernel had chosen is lost, which getsockname() does not show: bind() fails with EINVAL where the
 * socket still has its port. */
static int listen_again(struct listener *listener, int fd, const char **failed, struct log *log)
{
    struct listener_system system = { .known = false };

    *failed = "bind";
    if (bind(fd, &listener->address.any, listener->address.length) == -1 && errno != EINVAL)
        return -1;
    *failed = "listen";
    return listener_listen(listener, fd, &system, log);
}

/* Puts a new socket in the place of the old one; -1 as above. */
static int replace_socket(struct listener *listener, int fd, const char **failed, struct log *log)
{
    struct listener_system system = { .known = false };
    int fresh = listener_open_socket(listener, log), error;

    if (fresh == -1)
        return -1;
    *failed = "listen";
    if (listener_listen(listener, fresh, &system, log) == 0) {
        *failed = "dup2";
        if (descriptor_replace(fresh, fd) != -1)
            *failed = NULL;
    }
    error = errno;
    close(fresh);
    errno = error;
    return *failed == NULL ? 0 : -1;
}

static bool is_power_of_two(unsigned n)
{
    return (n & (n - 1)) == 0;
}

/* Whether the listener is tried this time. One that fails is tried ever less often, and less often
 * logged, but never given up. */
static bool is_due(const struct listener *listener)
{
    return is_power_of_two(listener->mend_failures) || listener->mend_failures % TRIES_MOST == 0;
}

/* Lets others be bound to the port where one of them listens on it already: a wildcard, or an
 * address that the wildcard includes. */
static void allow_others(
    const struct listener *listener, const struct listeners *others, bool allow)
{
    const struct listener *other = listener_set_overlap(others, listener, NULL);

    for (; other != NULL; other = listener_set_overlap(others, listener, other)) {
        listener_allow_others(other, allow);
        listener_allow_others(listener, allow);
    }
}

int listener_mend(
    struct listener *listener, int fd, const struct listeners *others, struct log *log)
{
    const char *failed = NULL;
    int result = -1, error;

    assert(fd >= 0);
    if (is_due(listener)) {
        allow_others(listener, others, true);
        result = (listener->address.any.sa_family == AF_UNIX ? replace_socket : listen_again)(
            listener, fd, &failed, log);
        error = errno;
        allow_others(listener, others, false);
        errno = error;
    }
    if (result == -1) {
        listener->mend_failures++;
        if (failed != NULL)
            log_write(log, LEVEL_EMERG, errno, "%s() to %s, which was shut down, failed", failed,
                listener->text);
        return -1;
    }
    listener->mend_failures = 0;
    if (is_power_of_two(++listener->mended_n))
        log_write(log, LEVEL_ALERT, 0, "listener %s was shut down, and listens again (%u)",
            listener->text, listener->mended_n);
    return 0;
}

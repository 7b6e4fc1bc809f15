/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket options, set where they differ from what the configuration says. Never fails: what the
 * kernel refuses is logged as an alert and ignored. */
#include "net/listener_options.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>

const struct listener_options listener_defaults = {
    .backlog = 511,
    .fastopen = -1,
    .ipv6only = true,
    .tcp_nodelay = true,
};

const char *listener_lacks(const struct listener_options *options)
{
    if (options->deferred && os_option_defer_accept.number == -1)
        return "deferred";
    if (options->fastopen != -1 && os_option_fastopen.number == -1)
        return "fastopen";
    if ((options->keepidle != 0 || options->keepintvl != 0 || options->keepcnt != 0) &&
        os_option_keepidle.number == -1)
        return "so_keepalive=keepidle:keepintvl:keepcnt";
    return NULL;
}

void listener_set_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log)
{
    if (setsockopt(fd, option->level, option->number, &value, sizeof(value)) == -1)
        log_write(log, LEVEL_ALERT, errno, "setsockopt(%s, %d) %s failed, ignored", option->name,
            value, listener->text);
}

int listener_option_of(int fd, const struct os_option *option)
{
    int value;
    socklen_t length = sizeof(value);

    if (getsockopt(fd, option->level, option->number, &value, &length) == -1)
        return 0;
    return value;
}

void listener_change_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log)
{
    if (listener_option_of(fd, option) != value)
        listener_set_option(listener, fd, option, value, log);
}

void listener_set_bind_options(const struct listener *listener, int fd, struct log *log)
{
    const struct listener_options *options = &listener->options;

    assert(fd >= 0);
    if (listener->address.any.sa_family == AF_UNIX)
        return;
    listener_change_option(listener, fd, OPTION(SOL_SOCKET, SO_REUSEADDR), 1, log);
    listener_change_option(listener, fd, OPTION(SOL_SOCKET, SO_REUSEPORT),
        options->reuseport || listener->beside, log);
    if (listener->address.any.sa_family == AF_INET6)
        listener_change_option(
            listener, fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY), options->ipv6only, log);
}

/* Keeps accept() from waiting for a client. Any process that has the socket can make it blocking
 * for all of them: it then waits for a jiffy, and the next listen() undoes it. */
static void set_nonblocking(const struct listener *listener, int fd, struct log *log)
{
    static const struct timeval least = { .tv_usec = 1 };
    int flags = fcntl(fd, F_GETFL);

    if (flags != -1 && (flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == -1)
        flags = -1;
    if (flags == -1)
        log_write(log, LEVEL_ALERT, errno, "fcntl(O_NONBLOCK) %s failed, ignored", listener->text);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &least, sizeof(least)) == -1)
        log_write(
            log, LEVEL_ALERT, errno, "setsockopt(SO_RCVTIMEO) %s failed, ignored", listener->text);
}

/* Sets an option whose value 0 stands for the system's default, which only a socket
 * that others have had may no longer have. */
static void change_or_default(const struct listener *listener, int fd,
    const struct os_option *option, int value, int default_value, struct log *log)
{
    if (value == 0)
        value = default_value;
    if (value > 0)
        listener_change_option(listener, fd, option, value, log);
}

/* Sets the options that POSIX lacks. */
static void set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    static const struct listener_untouched unknown = { .known = false };
    const struct listener_options *options = &listener->options;
    int fastopen = options->fastopen == -1 ? 0 : options->fastopen;
    const struct listener_untouched *defaults = NULL;

    assert(listener_lacks(options) == NULL);
    if (listener->adopted || system->restores)
        defaults = listener_untouched_of(listener, system);
    if (defaults == NULL)
        defaults = &unknown;
    change_or_default(
        listener, fd, &os_option_keepidle, options->keepidle, defaults->keepidle, log);
    change_or_default(
        listener, fd, &os_option_keepintvl, options->keepintvl, defaults->keepintvl, log);
    change_or_default(listener, fd, &os_option_keepcnt, options->keepcnt, defaults->keepcnt, log);
    listener_change_option(listener, fd, &os_option_fastopen, fastopen, log);
    listener_change_option(listener, fd, &os_option_defer_accept, options->deferred, log);
}

void listener_set_options(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct listener_options *options = &listener->options;

    assert(fd >= 0);
    set_nonblocking(listener, fd, log);
    descriptor_stop_linger(fd); /* accepted sockets inherit it */
    /* the kernel shows other sizes than it was given, so there is nothing to compare */
    if (options->rcvbuf != 0)
        listener_set_option(listener, fd, OPTION(SOL_SOCKET, SO_RCVBUF), options->rcvbuf, log);
    if (options->sndbuf != 0)
        listener_set_option(listener, fd, OPTION(SOL_SOCKET, SO_SNDBUF), options->sndbuf, log);
    if (listener->address.any.sa_family == AF_UNIX)
        return;
    if (listener->adopted || system->restores)
        listener_restore_buffers(listener, fd, system, log);
    if (system->restores)
        listener_restore_untouched(listener, fd, system, log);
    listener_change_option(listener, fd, OPTION(SOL_SOCKET, SO_KEEPALIVE),
        options->keepalive == LISTENER_KEEPALIVE_ON, log);
    set_tcp_extras(listener, fd, system, log);
    listener_change_option(
        listener, fd, OPTION(IPPROTO_TCP, TCP_NODELAY), options->tcp_nodelay, log);
}

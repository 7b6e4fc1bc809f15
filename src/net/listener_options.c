/* SPDX-License-Identifier: BSD-2-Clause */
#include "net/listener_options.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

const struct fb_listen_options fb_listen_defaults = {
    .backlog = 511,
    .fastopen = -1,
    .ipv6only = true,
    .tcp_nodelay = true,
};

/* What an option is called, by the kernel and in the log. */
struct option {
    int level;
    int number;
    const char *name;
};

#define OPTION(level, number) (&(const struct option) { level, number, #number })

static void set(const struct fb_listener *listener, int fd, const struct option *option, int value,
    struct fb_log *log)
{
    if (setsockopt(fd, option->level, option->number, &value, sizeof(value)) == -1)
        fb_log(log, FB_ALERT, errno, "setsockopt(%s, %d) %s failed, ignored", option->name, value,
            listener->text);
}

/* An option that a kernel does not know has the value 0, so that off is never refused. */
static int get(int fd, const struct option *option)
{
    int value;
    socklen_t length = sizeof(value);

    if (getsockopt(fd, option->level, option->number, &value, &length) == -1)
        return 0;
    return value;
}

/* Sets it only where it differs: a kept socket gets what the configuration has changed, in both
 * directions, and a default asks nothing of the kernel. */
static void change(const struct fb_listener *listener, int fd, const struct option *option,
    int value, struct fb_log *log)
{
    if (get(fd, option) != value)
        set(listener, fd, option, value, log);
}

/* The value 0 stands for the system's default, which a kept socket may no longer have, and which an
 * untouched socket shows. */
static void change_or_default(const struct fb_listener *listener, int fd,
    const struct option *option, int value, struct fb_log *log)
{
    int untouched;

    if (value == 0) {
        if (!listener->adopted)
            return;
        untouched = socket(listener->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (untouched == -1)
            return;
        value = get(untouched, option);
        close(untouched);
    }
    change(listener, fd, option, value, log);
}

void fb_listener_set_bind_options(const struct fb_listener *listener, int fd, struct fb_log *log)
{
    const struct fb_listen_options *options = &listener->options;

    if (listener->address.any.sa_family == AF_UNIX)
        return;
    change(listener, fd, OPTION(SOL_SOCKET, SO_REUSEADDR), 1, log);
    change(listener, fd, OPTION(SOL_SOCKET, SO_REUSEPORT), options->reuseport || listener->beside,
        log);
    if (listener->address.any.sa_family == AF_INET6)
        change(listener, fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY), options->ipv6only, log);
}

static void set_tcp_options(const struct fb_listener *listener, int fd, struct fb_log *log)
{
    const struct fb_listen_options *options = &listener->options;
    int fastopen = options->fastopen == -1 ? 0 : options->fastopen;

    change(
        listener, fd, OPTION(SOL_SOCKET, SO_KEEPALIVE), options->keepalive == FB_KEEPALIVE_ON, log);
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPIDLE), options->keepidle, log);
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPINTVL), options->keepintvl, log);
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPCNT), options->keepcnt, log);
    change(listener, fd, OPTION(IPPROTO_TCP, TCP_FASTOPEN), fastopen, log);
    change(listener, fd, OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT), options->deferred, log);
    change(listener, fd, OPTION(IPPROTO_TCP, TCP_NODELAY), options->tcp_nodelay, log);
}

void fb_listener_set_options(const struct fb_listener *listener, int fd, struct fb_log *log)
{
    const struct fb_listen_options *options = &listener->options;

    /* The kernel shows other sizes than it was given, so there is nothing to compare; and it has no
     * way back to its own sizing, so a kept socket whose size is no longer configured keeps it. */
    if (options->rcvbuf != 0)
        set(listener, fd, OPTION(SOL_SOCKET, SO_RCVBUF), options->rcvbuf, log);
    if (options->sndbuf != 0)
        set(listener, fd, OPTION(SOL_SOCKET, SO_SNDBUF), options->sndbuf, log);
    if (listener->address.any.sa_family == AF_UNIX)
        return;
    /* the kernel changes it on no bound socket */
    if (listener->adopted && listener->address.any.sa_family == AF_INET6 &&
        get(fd, OPTION(IPPROTO_IPV6, IPV6_V6ONLY)) != options->ipv6only)
        fb_log(log, FB_WARN, 0, "ipv6only=%s is ignored: %s is open already, and is kept as it is",
            options->ipv6only ? "on" : "off", listener->text);
    set_tcp_options(listener, fd, log);
}

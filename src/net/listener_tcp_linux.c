/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a TCP listener that POSIX lacks: times of the keep-alive, Fast Open, and accepting
 * that is deferred until there is input. Linux has all of them. */
#include "base/descriptor.h"
#include "net/listener_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

const char *listener_lacks(const struct listener_options *options)
{
    (void)options;
    return NULL;
}

/* A new socket shows the defaults, which are the same for IPv4 and IPv6. Asked for each option of
 * each listener, they would be most of what a reload of 10,000 listeners takes. */
static void ask_system(struct listener_system *system, int family)
{
    int untouched = descriptor_socket(family, SOCK_STREAM, 0);

    if (untouched == -1)
        return;
    system->keepidle = listener_option_of(untouched, OPTION(IPPROTO_TCP, TCP_KEEPIDLE));
    system->keepintvl = listener_option_of(untouched, OPTION(IPPROTO_TCP, TCP_KEEPINTVL));
    system->keepcnt = listener_option_of(untouched, OPTION(IPPROTO_TCP, TCP_KEEPCNT));
    system->known = true;
    close(untouched);
}

/* Sets an option whose value 0 stands for the system's default, which only a kept socket may no
 * longer have. */
static void change_or_default(const struct listener *listener, int fd,
    const struct socket_option *option, int value, int default_value, struct log *log)
{
    if (value == 0 && listener->adopted)
        value = default_value;
    if (value != 0) /* else it is new, or the default is not known */
        listener_change_option(listener, fd, option, value, log);
}

void listener_set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    const struct listener_options *options = &listener->options;
    int fastopen = options->fastopen == -1 ? 0 : options->fastopen;

    if (listener->adopted && !system->known)
        ask_system(system, listener->address.any.sa_family);
    change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPIDLE), options->keepidle, system->keepidle, log);
    change_or_default(listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPINTVL), options->keepintvl,
        system->keepintvl, log);
    change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPCNT), options->keepcnt, system->keepcnt, log);
    listener_change_option(listener, fd, OPTION(IPPROTO_TCP, TCP_FASTOPEN), fastopen, log);
    listener_change_option(
        listener, fd, OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT), options->deferred, log);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a TCP listener that POSIX lacks: times of the keep-alive, Fast Open, and accepting
 * that is deferred until there is input. Linux has all of them. */
#include "net/listener_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

const char *listener_lacks(const struct listener_options *options)
{
    (void)options;
    return NULL;
}

void listener_set_tcp_extras(const struct listener *listener, int fd, struct log *log)
{
    const struct listener_options *options = &listener->options;
    int fastopen = options->fastopen == -1 ? 0 : options->fastopen;

    listener_change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPIDLE), options->keepidle, log);
    listener_change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPINTVL), options->keepintvl, log);
    listener_change_or_default(
        listener, fd, OPTION(IPPROTO_TCP, TCP_KEEPCNT), options->keepcnt, log);
    listener_change_option(listener, fd, OPTION(IPPROTO_TCP, TCP_FASTOPEN), fastopen, log);
    listener_change_option(
        listener, fd, OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT), options->deferred, log);
}

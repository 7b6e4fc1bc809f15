/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a TCP listener that POSIX lacks: none can be set, and a configuration that has one
 * is refused. */
#include "net/listener_options.h"

#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>

const struct socket_option listener_untouched_options[] = {
    { SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT" },
    { SOL_SOCKET, SO_DONTROUTE, "SO_DONTROUTE" },
    { SOL_SOCKET, SO_OOBINLINE, "SO_OOBINLINE" },
};

const size_t listener_untouched_n =
    sizeof(listener_untouched_options) / sizeof(listener_untouched_options[0]);
/* No option: it reads as 0, which is no lock. */
const struct socket_option listener_buf_lock = { SOL_SOCKET, -1, "" };

const char *listener_lacks(const struct listener_options *options)
{
    if (options->deferred)
        return "deferred";
    if (options->fastopen != -1)
        return "fastopen";
    if (options->keepidle != 0 || options->keepintvl != 0 || options->keepcnt != 0)
        return "so_keepalive=keepidle:keepintvl:keepcnt";
    return NULL;
}

void listener_read_keepalive(struct listener_untouched *values, int fd)
{
    (void)values;
    (void)fd;
}

bool listener_lost_backlog(const struct listener *listener, int fd)
{
    (void)listener;
    (void)fd;
    return true;
}

void listener_detach_programs(int fd)
{
    (void)fd;
}

void listener_set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    assert(listener_lacks(&listener->options) == NULL);
    (void)listener;
    (void)fd;
    (void)system;
    (void)log;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of a TCP listener that POSIX lacks: none can be set, and a configuration that has one
 * is refused. */
#include "net/listener_options.h"

#include <assert.h>
#include <stddef.h>

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

void listener_set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log)
{
    assert(listener_lacks(&listener->options) == NULL);
    (void)listener;
    (void)fd;
    (void)system;
    (void)log;
}

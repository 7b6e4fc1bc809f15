/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket option of a listener: read, and set where different, under its name in the log. Never
 * fails: an option refused by the kernel is an alert. */
#pragma once

#include "net/listener.h"
#include "os/sockets.h"

#include <errno.h>

#define OPTION(level, number) (&(const struct os_option) { level, number, #number })

/* Returns an option's value; 0 where the kernel does not know the option, so that "off" is never
 * refused. */
static inline int listener_option_of(int fd, const struct os_option *option)
{
    int value;
    socklen_t length = sizeof(value);

    if (getsockopt(fd, option->level, option->number, &value, &length) == -1)
        return 0;
    return value;
}

static inline void listener_set_option(const struct listener *listener, int fd,
    const struct os_option *option, int value, struct log *log)
{
    if (setsockopt(fd, option->level, option->number, &value, sizeof(value)) == -1)
        log_write(log, LEVEL_ALERT, errno, "setsockopt(%s, %d) %s failed, ignored", option->name,
            value, listener->text);
}

/* Sets an option only where it differs: a kept socket gets the changes of the configuration, in
 * both directions, and a default asks nothing of the kernel. */
static inline void listener_change_option(const struct listener *listener, int fd,
    const struct os_option *option, int value, struct log *log)
{
    if (listener_option_of(fd, option) != value)
        listener_set_option(listener, fd, option, value, log);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket options of a listener.
 *
 * Responsible for setting what the configuration says, on new sockets and kept ones, in both
 * directions. Never fails: an option that the kernel refuses is an alert. */
#pragma once

#include "net/listener.h"
#include "os/sockets.h"

/* Sets the options that must stand before bind(): SO_REUSEADDR, SO_REUSEPORT and IPV6_V6ONLY. */
void listener_set_bind_options(const struct listener *listener, int fd, struct log *log);
/* Sets the options of a bound socket. */
void listener_set_options(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);

/* Returns what of the options this system cannot set, as a parameter of "listen", or NULL. */
const char *listener_lacks(const struct listener_options *options);

/* Gives buffers back to the kernel whose sizes no configuration sets (listener_restore.c). */
void listener_restore_buffers(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Sets all other options that no configuration sets to what they were. */
void listener_restore_untouched(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Records the options of sockets that the service manager has passed, at the first commit. */
void listener_record(struct listener *listener);
/* Copies what was recorded for the previous configuration. */
void listener_take_record(struct listener *listener, const struct listener *from);

#define OPTION(level, number) (&(const struct os_option) { level, number, #number })

/* Sets an option only where it differs: a kept socket gets what the configuration has changed, in
 * both directions, and a default asks nothing of the kernel. */
void listener_change_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log);
/* Returns an option's value; 0 where the kernel does not know it, so that "off" is never
 * refused. */
int listener_option_of(int fd, const struct os_option *option);
/* Whether the line about an event that has come so often is logged: few of many are. */
static inline bool listener_is_told(unsigned times)
{
    return (times & (times - 1)) == 0;
}

/* Sets an option; a failure is an alert. */
void listener_set_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log);

/* Returns the values of a socket that nobody has touched; NULL where none can be made. */
const struct listener_untouched *listener_untouched_of(
    const struct listener *listener, struct listener_system *system);

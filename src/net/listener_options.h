/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket options of a listener.
 *
 * Responsible for setting what the configuration says, on new sockets and kept ones, in both
 * directions. Never fails: an option that the kernel refuses is an alert. */
#pragma once

#include "net/listener.h"

/* Sets the options that must stand before bind(): SO_REUSEADDR, SO_REUSEPORT and IPV6_V6ONLY. */
void listener_set_bind_options(const struct listener *listener, int fd, struct log *log);
/* Sets the options of a bound socket. */
void listener_set_options(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);

/* Returns what of the options this system cannot set, as a parameter of "listen", or NULL. */
const char *listener_lacks(const struct listener_options *options);

/* For listener_tcp_linux.c and listener_tcp_none.c: */

/* An option as the kernel and the log name it. */
struct socket_option {
    int level;
    int number;
    const char *name;
};

#define OPTION(level, number) (&(const struct socket_option) { level, number, #number })

/* Sets an option only where it differs: a kept socket gets what the configuration has changed, in
 * both directions, and a default asks nothing of the kernel. */
void listener_change_option(const struct listener *listener, int fd,
    const struct socket_option *option, int value, struct log *log);
/* Returns an option's value; 0 where the kernel does not know it, so that "off" is never
 * refused. */
int listener_option_of(int fd, const struct socket_option *option);
/* Sets the options of TCP that POSIX lacks. */
void listener_set_tcp_extras(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);

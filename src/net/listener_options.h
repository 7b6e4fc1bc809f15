/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket options of a listener. */
#pragma once

#include "net/listener.h"
#include "os/sockets.h"

extern const struct listener_options listener_defaults;

/* Returns the first option unsupported by this system, as a parameter of "listen", or NULL. */
const char *listener_lacks(const struct listener_options *options);
/* Sets the options needed before bind(): SO_REUSEADDR, SO_REUSEPORT and IPV6_V6ONLY. */
void listener_set_bind_options(const struct listener *listener, int fd, struct log *log);
/* Sets the options of a bound socket. */
void listener_set_options(
    const struct listener *listener, int fd, struct listener_system *system, struct log *log);
/* Sets options and backlog of a listening socket, perhaps changed by another process. */
void listener_restore(
    struct listener *listener, int fd, struct listener_system *system, struct log *log);

/* A socket option with a name for log lines. */
#define OPTION(level, number) (&(const struct os_option) { level, number, #number })

/* Returns an option's value; 0 for an unknown option, so that "off" is never refused. */
int listener_option_of(int fd, const struct os_option *option);
/* Sets an option where different; a refusal of the kernel is an alert. */
void listener_change_option(const struct listener *listener, int fd, const struct os_option *option,
    int value, struct log *log);
/* Returns the values of an untouched socket; NULL where no socket can be made. */
const struct listener_untouched *listener_untouched_of(
    const struct listener *listener, struct listener_system *system);
/* Records the options of sockets that the service manager has passed, at the first commit. */
void listener_record(struct listener *listener);
/* Copies the record of the previous configuration. */
void listener_take_record(struct listener *listener, const struct listener *from);

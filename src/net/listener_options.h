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
void listener_set_options(const struct listener *listener, int fd, struct log *log);

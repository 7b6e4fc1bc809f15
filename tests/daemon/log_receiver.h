/* SPDX-License-Identifier: BSD-2-Clause */
/* A receiver of the daemon's log lines as datagrams. */
#pragma once

#include "daemon/daemon.h"

/* On a port of 127.0.0.1 that the kernel chooses; or on a path in the daemon's directory. */
int log_receiver_udp(in_port_t *port);
int log_receiver_unix(const struct daemon *daemon, const char *name);
/* Closes and removes the path. */
void log_receiver_end(const struct daemon *daemon, const char *name, int fd);

/* Waits for a datagram with the text, and drops earlier datagrams; valid until the next call. */
const char *log_receiver_wait(int fd, const char *text);
/* The next datagram, "" if there is none yet. */
const char *log_receiver_next(int fd);
/* How many there are with the text; none is left. */
unsigned log_receiver_drain(int fd, const char *text);

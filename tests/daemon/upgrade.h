/* SPDX-License-Identifier: BSD-2-Clause */
/* Upgrades of a daemon's binary: a new master process starts beside the old process; then the
 * upgrade is completed (the old process ends) or rolled back (the new process ends). */
#pragma once

#include "daemon/daemon.h"

/* The configuration of a server that echoes, on a port and on a path, with further directives. */
#define UPGRADE_ECHO(directives)                                                                   \
    directives " worker_processes 2; events {} stream { "                                          \
               "server { listen 127.0.0.1:$0; listen unix:$D/socket; echo; } }\n"

/* Connects a client to the port and another to the path. */
void upgrade_echo_once(struct daemon *daemon);
/* The number in a file; 0: there is none. */
pid_t upgrade_read_pid(const struct daemon *daemon, const char *name);
/* Starts the new master process, and waits until it serves beside the old process; returns the
 * pid. */
pid_t upgrade_start(struct daemon *daemon);
/* Waits until the old process has ended: `daemon` is the new one from then on, a child of ours. The
 * second has it end. */
void upgrade_wait_complete(struct daemon *daemon, pid_t new);
void upgrade_complete(struct daemon *daemon, pid_t new);
/* Waits until the old process has its names again; the second ends the new process before. */
void upgrade_wait_rollback(struct daemon *daemon);
void upgrade_roll_back(struct daemon *daemon, pid_t new);

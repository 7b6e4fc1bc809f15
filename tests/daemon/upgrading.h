/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon that changes its binary: a new master process beside the old one, and the ways on. */
#pragma once

#include "daemon/daemon.h"

/* A number in a file; 0: there is none. */
pid_t pid_in(const struct daemon *daemon, const char *name);
/* The new master process, which serves beside the old one. */
pid_t upgrade(struct daemon *daemon);
/* The old one ends: the daemon is the new one's from now on, which has lost its parent to us. */
void wait_for_old(struct daemon *daemon, pid_t new);
void go_forward(struct daemon *daemon, pid_t new);
/* The new one ends, and the old one has its names again. */
void wait_for_return(struct daemon *daemon);
void go_back(struct daemon *daemon, pid_t new);

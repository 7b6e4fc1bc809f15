/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets passed by a service manager: LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES of the
 * environment, as in sd_listen_fds(3). Sockets of the descriptor store come the same way, and
 * differ by the name. */
#pragma once

#include "base/log.h"
#include "net/adopted.h"

#include <sys/types.h>

/* Adds the passed sockets, if any, and removes the variables; -1 after an emerg line. `self` is our
 * pid. To be called before any descriptor is opened. */
int listen_fds_adopt(struct adopted *sockets, pid_t self, struct log *log);

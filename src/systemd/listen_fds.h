/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets that a service manager has passed to this process: LISTEN_PID, LISTEN_FDS
 * and LISTEN_FDNAMES of the environment, as sd_listen_fds(3) describes them. Sockets from its
 * descriptor store come in the same way and are told apart by their names. */
#pragma once

#include "base/log.h"
#include "net/adopted.h"

#include <sys/types.h>

/* Adds the sockets that were passed to us, if any; -1 after an emerg line. `self` is our pid. The
 * variables are removed. To be called before any descriptor is opened. */
int listen_fds_adopt(struct adopted *sockets, pid_t self, struct log *log);

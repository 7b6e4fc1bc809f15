/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifies clients of the control socket. Private to control/. Workers may have the master's
 * user, as in an unprivileged daemon: the user alone does not tell an operator from a worker in an
 * attacker's hands. */
#pragma once

#include "control/control.h"

/* Finds the pid (0: outside of our container); returns the reason of a refusal, or NULL. */
const char *control_peer_refusal(struct control *control, int fd, pid_t *pid);

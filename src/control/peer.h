/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells who asks on the control socket. Private to control/. Workers may have the master's user, as
 * in an unprivileged daemon: the user alone does not tell an operator from a worker that is in an
 * attacker's hands. */
#pragma once

#include "control/control.h"

/* Finds out who has connected, giving *pid (0: a process outside of our container). Returns why it
 * may not use the socket, or NULL. */
const char *control_peer_refusal(struct control *control, int fd, pid_t *pid);

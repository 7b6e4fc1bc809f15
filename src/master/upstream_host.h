/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of servers of the configuration in force, for the control socket: operations of
 * struct control_ops, whose host is the master. */
#pragma once

#include "control/control.h"

bool upstream_host_fill(void *host, unsigned i, struct control_upstream *out);
void upstream_host_servers(void *host, unsigned i,
    void (*each)(void *arg, const struct control_server *server), void *arg);
enum control_set upstream_host_set(void *host, unsigned i, const char *server, const char *state);

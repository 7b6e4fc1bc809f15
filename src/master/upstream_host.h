/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of servers of the configuration in force, for the control socket: operations of
 * struct control_ops, whose host is the master. */
#pragma once

#include "control/control.h"

const void *upstream_host_next(void *host, const void *before, struct control_upstream *out);
void upstream_host_servers(void *host, const void *group,
    void (*each)(void *arg, const struct control_server *server), void *arg);
void upstream_host_names(void *host, const void *group,
    void (*each)(void *arg, const struct control_name *name), void *arg);
enum control_set upstream_host_set(
    void *host, const void *group, const char *server, const char *state);
void upstream_host_end(void *host);

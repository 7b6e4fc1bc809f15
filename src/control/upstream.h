/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "upstream": the groups of servers with their states, and the change of a state.
 * Private to control/. */
#pragma once

#include "control/client.h"

/* Handles a request {"command":"upstream"}, which changes a server's state where it has
 * "upstream", "server" and "state". */
void control_upstream_handle(struct control_client *client, struct json_value request);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "upstream": shows groups of servers with their states, and changes states. Private to
 * control/. */
#pragma once

#include "control/client.h"

/* Handles {"command":"upstream"}, a change where "server" or "state" is given. */
void control_upstream_handle(struct control_client *client, struct json_value request);
/* Adds servers that get no sessions, and groups of which no server does. */
void control_upstream_problems(const struct control *control, struct problems *problems);

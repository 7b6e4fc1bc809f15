/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "sessions": passes the reading end of a pipe, into which workers write their
 * sessions. Private to control/. */
#pragma once

#include "control/client.h"

/* Handles {"command":"sessions"}. */
void control_sessions_handle(struct control_client *client);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of clients, which become replies, or commands for the host. Private to control/. */
#pragma once

#include "control/client.h"

/* Handles the request in the first `n` bytes of the input; the client is not reading any more
 * then. */
void control_command_handle(struct control_client *client, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange of requests and replies with a client. Private to control/. */
#pragma once

#include "control/client.h"

/* Takes the descriptor of a new client and begins. A process that may not use the socket is told
 * so and cut off. */
void control_exchange_begin(struct control *control, int fd);
/* Sends, receives and handles what can be without waiting, and may destroy the client. */
void control_exchange_run(struct control_client *client);

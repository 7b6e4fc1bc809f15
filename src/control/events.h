/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "events": replies with the latest events, and sends a follower those that happen from
 * then on. Private to control/. */
#pragma once

#include "control/client.h"

/* Handles {"command":"events"}, with "since", the number of an event, and "follow". */
void control_events_handle(struct control_client *client, struct json_value request);
/* Whether a waiting follower has missed events. */
bool control_events_are_due(const struct control_client *client);
/* Sends the events that the client has not been sent yet. */
void control_events_send(struct control_client *client);

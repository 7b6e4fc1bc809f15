/* SPDX-License-Identifier: BSD-2-Clause */
/* The replies to clients, as lines of JSON. Private to control/. */
#pragma once

#include "base/json.h"
#include "control/client.h"

/* Writes {"ok":..., to which the caller adds members before control_reply_end(). */
void control_reply_begin(struct json *json, bool ok);
/* Ends the reply and begins to send it. */
void control_reply_end(struct json *json, struct control_client *client);
/* Replies that the request failed; `last`: and closes the connection behind the reply. */
void control_reply_error(struct control_client *client, const char *error, bool last);
/* Sends a line that says why the client still waits; a client that does not read goes without. */
void control_reply_waiting(struct control_client *client, const char *why);
/* Replies what came of a command. */
void control_reply_outcome(struct control_client *client, const struct control_outcome *outcome);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The command "certificates": shows what a keeper says of certificates. Private to control/. */
#pragma once

#include "control/client.h"

/* Handles {"command":"certificates"}. */
void control_certificates_handle(struct control_client *client);
/* Replies to a waiting client with a keeper's report, untrusted text; NULL: there is none. */
void control_certificates_reply(struct control_client *client, const char *text, size_t n);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of a reply to "status" as text. */
#pragma once

#include "base/json.h"

#include <stdio.h>

/* Writes the clients of each `listen`, and how they ended; nothing where there are none. */
void reply_text_servers(struct json_value servers, FILE *out);
/* Writes the tries of the servers of groups, and the waits of queues; nothing as above. */
void reply_text_upstream_servers(struct json_value servers, FILE *out);

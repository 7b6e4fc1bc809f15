/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's status as text for people, made from the reply of the control socket. The daemon may
 * be of a different version: missing members are shown as "-". */
#pragma once

#include "base/json.h"

#include <stdio.h>

/* Writes the reply to "status" as text. */
void status_text_write(struct json_value status, FILE *out);

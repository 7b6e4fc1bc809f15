/* SPDX-License-Identifier: BSD-2-Clause */
/* Diagnostics as JSON: the one form in which they leave a process, for the control socket's
 * clients and for the other master process of an upgrade. What is written here is read here;
 * readers take any text and assert nothing about it. */
#pragma once

#include "base/diag.h"
#include "base/json.h"

/* Writes the member "messages", an array with all messages of `diag` (NULL: none). */
void diag_to_json(struct json *json, const struct diag *diag);

/* Reads the next message of the array `messages` into `out`; *at is the element read last, none
 * for the first. A level that is not known becomes LEVEL_EMERG. Returns false after the last. */
bool diag_from_json(struct json_value messages, struct json_value *at, struct diag_message *out);
/* Adds all messages of an array to a session. `diag` may be NULL. */
void diag_add_json(struct diag *diag, uint32_t session, struct json_value messages);

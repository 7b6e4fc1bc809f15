/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies of the control socket as text for people. */
#pragma once

#include "base/json.h"

#include <stdio.h>

/* Writes the reply to "status". */
void reply_text_status(struct json_value status, FILE *out);
/* How bad the problems are of the reply to "status": 0: none, 1: warnings, 2: critical ones. */
int reply_text_level(struct json_value status);
/* Writes the problems of the reply to "status", behind a line for a monitoring system. */
void reply_text_check(struct json_value status, FILE *out);
/* Writes the reply to "upstream". */
void reply_text_upstreams(struct json_value reply, FILE *out);
/* Writes the reply to "certificates". */
void reply_text_certificates(struct json_value reply, FILE *out);
/* Writes the reply to "events". */
void reply_text_events(struct json_value reply, FILE *out);
/* Writes the reply to "log". */
void reply_text_log(struct json_value reply, FILE *out);

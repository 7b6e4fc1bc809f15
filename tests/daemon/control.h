/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the control socket. */
#pragma once

#include "base/json.h"
#include "daemon/daemon.h"

/* A connection to the socket beside the pid file. */
int control_open(const struct daemon *daemon);
/* Sends {"command":"..."}. */
void control_send(int fd, const char *command);
/* The next line, which must be JSON; valid until the next call. */
struct json_value control_receive(int fd);
/* Opens, asks, receives and closes. */
struct json_value control_ask(const struct daemon *daemon, const char *command);

/* Whether "ok" is true; it must be there. */
bool control_is_ok(struct json_value answer);
/* A member's string, "" if it has none; valid until the next call. */
const char *control_text(struct json_value object, const char *name);
/* A member's number, which must be there. */
int64_t control_number(struct json_value object, const char *name);
/* An element of a member, which must be there, and how many there are. */
struct json_value control_at(struct json_value object, const char *name, unsigned i);
unsigned control_count(struct json_value object, const char *name);
/* The message containing the text; fails without a match. */
struct json_value control_message(struct json_value answer, const char *text);

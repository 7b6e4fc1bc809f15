/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables that protocols define: found in sessions of their own protocol, while it has the
 * client. */
#pragma once

#include "text/variable.h"

struct server;

/* Calls the protocol's `value`. The variable's `arg` is the protocol, and its `number` the place in
 * that one's table. */
int variables_protocol_get(
    struct fb_conn *conn, const struct variable *variable, struct value *value);
/* Whether the variable is one of the server's protocol. */
bool variables_protocol_has(const struct server *server, const struct variable *variable);

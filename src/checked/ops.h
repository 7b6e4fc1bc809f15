/* SPDX-License-Identifier: BSD-2-Clause */
/* The callbacks of connections in the checked mode. */
#pragma once

#include "checked/checked.h"

/* Fills in wrappers of operations. */
void checked_ops_make(
    struct checked_ops *made, const fb_ops *from, const struct checked_protocol *protocol);
/* Returns the worker's wrappers of operations, made where there are none; NULL without memory. */
const fb_ops *checked_ops_of(
    struct checked *checked, const struct checked_protocol *protocol, const fb_ops *from);
/* Enter and leave a callback of a connection. */
void checked_enter_conn(struct checked_scope *scope, const fb_conn *conn, const char *callback);
void checked_leave_conn(struct checked_scope *scope, const fb_conn *conn);

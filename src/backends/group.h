/* SPDX-License-Identifier: BSD-2-Clause */
/* The group of servers that a session is led to. */
#pragma once

#include "session/conn.h"
#include "text/map_table.h"
#include "upstream/upstreams.h"

/* The groups of `upstream {}`, which a text with variables may name. */
struct named_upstreams {
    struct map_table numbers; /* by name */
    struct upstream **groups;
};

/* Returns the group that a text leads to; NULL, after a line in the error log, with what is wrong
 * in *status. A group that is made for this session lies in its memory. */
struct upstream *backend_group_find(
    struct fb_conn *client, const struct fb_upstream *where, fb_choice *status);
/* Closes a group that was made for a session; leaves any other alone. */
void backend_group_close(struct upstream *upstream);

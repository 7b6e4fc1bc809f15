/* SPDX-License-Identifier: BSD-2-Clause */
/* The group of servers of a session. */
#pragma once

#include "session/conn.h"
#include "text/map_table.h"
#include "upstream/upstreams.h"

/* The groups of `upstream {}`, as named by a text with variables. */
struct named_upstreams {
    struct map_table numbers; /* by name */
    struct upstream **groups;
};

/* Returns the group of a text; NULL, after a line in the error log, with the reason in *status. A
 * group made for the session lies in the session's memory. */
struct upstream *backend_group_find(
    struct fb_conn *client, const struct fb_upstream *where, fb_choice *status);
/* Closes a group made for a session; leaves any configured group alone. */
void backend_group_close(struct upstream *upstream);

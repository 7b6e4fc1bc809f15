/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of sessions of servers out of use: `proxy_session_drop`.
 *
 * Responsible for polling the servers of watched sessions while there are any, and for ending
 * the sessions at once, or spread over time. Costs unwatched sessions nothing. Invariant: while
 * a try is watched, the stream's timer `drop` is set. */
#pragma once

#include "backends/tries.h"

/* Watches the server of the begun try, where a setting says so and the server's state can
 * change. */
void backend_drop_watch(struct session_tries *tries);

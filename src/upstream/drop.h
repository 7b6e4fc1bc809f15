/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that are not to be used any more, and whose sessions are to end where proxy_session_drop
 * says so: those that are down or unhealthy, and addresses that their names have left. Ends no
 * session: its caller does, of each whose peer has a time `out_ms`. */
#pragma once

#include "upstream/upstreams.h"

struct peer;

enum drop_found {
    DROP_NONE, /* no try is watched */
    DROP_WATCHED,
    DROP_OUT, /* ... and the peer of one is out */
};

/* Looks at the peers of all tries that are watched (choice_watch()), heeds what was said of them
 * since, and logs which of them are out from now on. */
enum drop_found drop_look(struct upstreams *upstreams);

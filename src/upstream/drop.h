/* SPDX-License-Identifier: BSD-2-Clause */
/* proxy_session_drop: finds servers whose sessions are to end: a server is down or unhealthy, or a
 * name has lost the address. The caller ends sessions, by the peer's `out_ms`. */
#pragma once

#include "upstream/upstreams.h"

enum drop_found {
    DROP_NONE, /* no try is watched */
    DROP_WATCHED,
    DROP_OUT, /* ... and the peer of one is out */
};

/* Looks at the peers of watched tries (choice_watch()), and logs the peers that are newly out. */
enum drop_found drop_look(struct upstreams *upstreams);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The `server_name` directive: the names are checked and kept with their server. Without TLS no
 * name selects a client's server; names serve here to let servers share one address. */
#pragma once

#include "settings/setting.h"

#include <bsd/sys/queue.h>

/* A name of a server. */
struct server_name {
    STAILQ_ENTRY(server_name) link;
    const char *name; /* in lower case; a regular expression with its "~" */
    const struct conf_word *word;
};

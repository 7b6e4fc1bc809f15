/* SPDX-License-Identifier: BSD-2-Clause */
/* `server_name`: checked, and kept with the server. Without TLS no name selects a server. */
#pragma once

#include "settings/setting.h"

#include <bsd/sys/queue.h>

/* A name of a server. */
struct server_name {
    STAILQ_ENTRY(server_name) link;
    const char *name; /* in lower case; a regular expression with its "~" */
    const struct conf_word *word;
};

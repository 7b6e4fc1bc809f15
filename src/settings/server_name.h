/* SPDX-License-Identifier: BSD-2-Clause */
/* The `server_name` directive: its names are checked and kept with their server. No client is told
 * apart by them without TLS; what they are for here is that servers may have one address. */
#pragma once

#include "settings/setting.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

struct listen_address;

/* A name of a server. */
struct server_name {
    STAILQ_ENTRY(server_name) link;
    const char *name; /* in lower case; a regular expression with its "~" */
    const struct conf_word *word;
};

/* The names that servers of shared addresses have claimed there. */
struct claim;
RB_HEAD(claims, claim);

SETTER(server_name_set);

/* Claims the names of the server of `listen` for the address that it shares with `first`. Where
 * another has one of them there already, this is a warning, unless `quiet`. */
void server_name_claim(struct apply *apply, struct claims *claims,
    const struct listen_address *first, const struct listen_address *listen, bool quiet);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the system's name services, which may take for ever. A configuration check asks and
 * notes the answers; a reading with notes asks no service, so that the master never waits. Without
 * notes (`answers` of the options is NULL) the services are asked.
 *
 * Each call returns NULL, or the text of a mistake in the name. */
#pragma once

#include "net/address_parse.h"
#include "settings/apply.h"

#define LOOKUP_ADDRESSES_MAX 16

struct lookup_addresses {
    unsigned n;
    in_port_t last; /* end of a range of ports; 0: the addresses have theirs */
    struct address at[LOOKUP_ADDRESSES_MAX];
};

/* Finds the user, and sets the numbers and groups if kept. `group` NULL: the group with the user's
 * name, or the primary group. *of_group: the group is wrong. `word` NULL: no place. */
const char *lookup_user(struct apply *apply, const struct conf_word *word, const char *user,
    const char *group, bool is_kept, bool *of_group);
/* Finds the number of the group. */
const char *lookup_group(
    struct apply *apply, const struct conf_word *word, const char *name, gid_t *out);
/* Parse as address_parse_listen(), address_parse_host() and target_parse() do. */
const char *lookup_listen(
    struct apply *apply, const struct conf_word *word, struct lookup_addresses *out);
const char *lookup_host(struct apply *apply, const char *text, in_port_t port, struct address *out);
const char *lookup_target(struct apply *apply, const char *text, struct fb_target *out);
/* Parses the first argument: a block, or a name, of which each address is a block. */
int lookup_clients(struct apply *apply, const struct conf_directive *directive,
    struct address_block blocks[LOOKUP_ADDRESSES_MAX], unsigned *n);

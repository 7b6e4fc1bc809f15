/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives `allow` and `deny` of one list: a block with either inherits none. Private to
 * settings/. */
#pragma once

#include "features/access/access.h"
#include "settings/apply.h"

/* The rules of a block, and of the inheriting servers. */
struct access_setting {
    struct access_rules rules;
    const struct access *built;       /* NULL: not yet asked for by a server */
    const struct conf_directive *all; /* the first rule that is for all clients, or NULL */
    bool warned;                      /* place of a rule behind that */
};

/* The feature's struct of a server. */
struct access_values {
    struct access_setting *access; /* NULL: no rules */
};

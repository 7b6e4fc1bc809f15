/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `resolver`, which blocks of groups have, too. */
#pragma once

#include "settings/apply.h"

int resolver_set(struct apply *apply, const struct conf_directive *directive, void *field);
/* Notes that groups of servers, or sessions, ask the resolver, for workers to have. */
void resolver_use(
    struct apply *apply, const struct names_setting *resolver, enum names_users users);

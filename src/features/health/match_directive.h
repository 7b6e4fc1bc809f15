/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of `match`, by name. Private to settings/. */
#pragma once

#include "features/health/match.h"
#include "settings/setting.h"

int match_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
/* Returns the block of that name, wherever it stands; NULL: there is none so far. */
const struct match *match_find(const struct match_list *list, const char *name);

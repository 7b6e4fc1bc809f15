/* SPDX-License-Identifier: BSD-2-Clause */
/* The check of a configuration's names: whether those of the servers of groups have an answer now.
 * A name without one is a warning: nothing depends on it but its server. */
#pragma once

#include "settings/cycle.h"

/* Asks for all of them once, for a second at most, and shows a warning for each that has no answer,
 * in the log and, where that is not -1, with an excerpt of the file in `excerpts`. `known` is the
 * zone of the addresses that are in force, of which only the descriptor is used; NULL: there is
 * none, or it is another process's. */
void name_check_run(
    const struct cycle *cycle, const struct zone *known, struct log *log, int excerpts);

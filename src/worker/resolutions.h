/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that a worker's protocols ask for (fb_resolve()). Calls the protocols; a worker whose
 * configuration has no use for a resolver has none. */
#pragma once

#include "names/names.h"

struct worker;

/* Slots of the loop for resolvers. */
unsigned resolutions_slots(const struct worker *worker);
/* Makes the resolvers, before the sandbox closes; -1 after an emerg line. */
int resolutions_open(struct worker *worker);
/* fb_resolve(), of a connection or (NULL) of the worker. */
struct fb_resolution *resolutions_begin(
    struct fb_worker *handle, struct fb_conn *owner, struct names_query *query);

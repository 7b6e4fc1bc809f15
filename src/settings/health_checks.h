/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of servers that protocols have declared. Groups and blocks of `match` may stand further
 * down: they are looked up at the end. */
#pragma once

#include "upstream/health.h"

struct apply;
struct conf_word;

/* A check that a protocol has asked for. */
struct health_use {
    STAILQ_ENTRY(health_use) link;
    struct fb_health_check *handle;
    const struct fb_upstream *upstream;
    const struct conf_word *word;
    struct upstream_check *check;
};

/* Gives the checks to their groups, and reports those that lack something. */
void health_checks_finish(struct apply *apply);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of servers declared by protocols. Groups and `match` blocks are looked up at the end. */
#pragma once

#include "features/health/match.h"
#include "upstream/health.h"

struct conf_word;

/* A check that a protocol has asked for. */
struct health_use {
    STAILQ_ENTRY(health_use) link;
    struct fb_health_check *handle;
    const struct fb_upstream *upstream;
    const struct conf_word *word;
    struct upstream_check *check;
};

/* The feature's struct of the configuration. */
struct health_conf {
    struct match_list matches;
    STAILQ_HEAD(, health_use) uses;
};

/* Declares a check of servers for a protocol, as fb_conf_health_check(); NULL after a report. */
const fb_health_check *health_check_of_conf(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options);

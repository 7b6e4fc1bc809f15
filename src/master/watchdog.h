/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that are stuck. Private to master/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fb_master;

/* What was seen of a worker. */
struct fb_watch {
    uint64_t seen;     /* its heartbeat */
    uint64_t since_ms; /* when that was seen first */
    unsigned looks;    /* that have seen it again */
    bool stuck;        /* it is killed */
};

/* Looks at the workers whose turn it is, and kills those that are stuck. */
void fb_watchdog_meet_deadlines(struct fb_master *master, uint64_t *next);

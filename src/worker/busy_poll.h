/* SPDX-License-Identifier: BSD-2-Clause */
/* Polling before sleep: with `busy_poll` an idle worker looks for events for a bounded time before
 * it sleeps, so that early events need no wake-up. Never takes a processor from processes with
 * work: yields between two polls, and after an involuntary switch sleeps at once for a while. Never
 * runs a queue. */
#pragma once

#include "event/loop.h"

struct busy_poll {
    uint64_t ns;         /* the longest time; 0: off */
    uint64_t polls_most; /* limit in polls, for a clock that stands still */
    /* Whether a process has work for the processor. */
    bool (*is_wanted)(struct busy_poll *busy, uint64_t now_ms);
    uint64_t resume_ms;  /* until then the worker sleeps at once */
    uint64_t counted_ms; /* when the runnable processes were counted last */
    long switches;       /* context switches of the thread until then */
    int load;            /* for os_cpu_count_runnable() */
    long processors;
};

/* Sets up `busy`, and opens files, before the sandbox; `us`: 0 for none. */
void busy_poll_init(struct busy_poll *busy, int64_t us);
void busy_poll_done(struct busy_poll *busy);
/* Polls in place of a wait for at most *timeout ms (-1: for ever); true: an event is there. Else
 * the worker is to sleep for the rest, *timeout. */
bool busy_poll(struct busy_poll *busy, struct loop *loop, int *timeout);
/* `is_wanted` in the daemon: asks the kernel. */
bool busy_poll_is_wanted(struct busy_poll *busy, uint64_t now_ms);

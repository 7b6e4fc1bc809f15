/* SPDX-License-Identifier: BSD-2-Clause */
/* A run of a script as a variant: with other pieces, slow peers, trouble, an early end, a failing
 * allocation or a lost message. converse.c chooses the variants. */
#pragma once

#include "kit/kit.h"

/* The event before the step `step`, the last step run in a variant. */
enum kit_ending {
    KIT_RUNS_TO_END, /* no event: all steps are run */
    KIT_RESETS,      /* the client breaks the connection */
    KIT_SHUTS,       /* the client ends its half */
    KIT_KILLS,       /* a worker dies, and is replaced */
};

/* A variant: the differences from the script as it is written; all zero: none. */
struct kit_variant {
    char name[64];
    bool bytes;             /* clients send single bytes, of much input the first */
    uint64_t cut;           /* byte where clients begin a second piece; 0: a single piece */
    size_t window;          /* bytes taken by peers at a time; 0: any number */
    bool pausing;           /* peers take nothing until the script expects bytes */
    bool trouble;           /* the network makes trouble */
    uint64_t seed;          /* of the trouble */
    enum kit_ending ending; /* how the run ends early */
    size_t step;            /* the step before which it ends */
    bool half;              /* ends in the middle of the step's bytes instead */
    unsigned worker;        /* the worker that dies */
    bool refuses;           /* one allocation fails */
    bool refuses_start;     /* an allocation fails before a worker serves */
    bool loses;             /* a message between workers is lost */
    uint64_t after;         /* successful allocations, or arriving messages, before the failure */
};

/* A script and the test, equal in all variants; lent by the caller. */
struct kit_script {
    const fb_protocol *protocol;
    const fb_test_options *options;
    const fb_test_step *steps;
    size_t n;
};

/* The result of one run. */
struct kit_outcome {
    int failures; /* faults included */
    uint64_t allocations;
    uint64_t messages; /* between workers */
    bool refused;      /* the allocation that was to fail was made, or the message sent */
};

/* Runs the script once, from the start of a worker to its end. */
struct kit_outcome kit_script_run(
    const struct kit_script *script, const struct kit_variant *variant);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A script is played again and again, each time with something different. */
#pragma once

#include "kit/kit.h"

enum fb_kit_ending { FB_KIT_TO_THE_END, FB_KIT_BREAKS, FB_KIT_ENDS };

/* What is different this time. */
struct fb_kit_way {
    char name[64];
    bool bytes;    /* what is said comes in single bytes, */
    uint64_t cut;  /* ... or in two pieces with the second beginning here; 0: in one */
    size_t window; /* bytes that peers take at a time; 0: any number */
    bool pausing;  /* they take nothing until something is expected */
    bool trouble;  /* the network makes trouble, by this seed */
    uint64_t seed;
    enum fb_kit_ending ending; /* how the peer ends before a step, */
    size_t step;
    bool half;    /* ... or in the middle of what it says there */
    bool refuses; /* one allocation fails, after so many */
    uint64_t after;
};

struct fb_kit_script {
    const fb_protocol *protocol;
    const fb_test_options *options;
    const fb_test_step *steps;
    size_t n;
};

/* Of a play. */
struct fb_kit_outcome {
    int failures;
    uint64_t allocations;
    bool refused; /* the allocation that was to fail was made */
};

struct fb_kit_outcome fb_kit_play(const struct fb_kit_script *script, const struct fb_kit_way *way);

/* Prints what was heard instead of what was expected: `label: step 3: ...`. */
void fb_kit_differs(const char *label, size_t step, fb_bytes expected, fb_bytes heard);
void fb_kit_says_more(const char *label, size_t step, fb_bytes heard);

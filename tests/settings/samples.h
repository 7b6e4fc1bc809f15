/* SPDX-License-Identifier: BSD-2-Clause */
/* Every directive with values to try. What the daemon's tables say of a directive is taken from
 * them; what they cannot know, good values and what these set, is in samples.c. A directive without
 * a sample fails the tests, and so does a sample without a directive. */
#pragma once

#include "settings/apply.h"

enum field { FIELD_OTHER, FIELD_NUMBER, FIELD_TEXT };

/* The struct that a field of the table lies in. */
enum scope { SCOPE_CORE, SCOPE_EVENTS, SCOPE_SERVER };

struct sample {
    const char *name;
    const char *value; /* good; of a block: its braces */
    const char *again; /* another good value, where it may be repeated; or NULL */
    const char
        *manual;      /* the default that the manual shows, unless it is in the table; NULL: none */
    enum field field; /* the kind of the field that the table says */
    int64_t number;   /* the number that the value sets */
    int64_t initial;  /* the number by default, where that cannot be written */
    const char *text, *initial_text;             /* the first is within the directory */
    void (*check)(const struct fb_cycle *cycle); /* whether the value was set; or NULL */
};

struct directive_case {
    const char *name;
    unsigned at, least, most;
    bool repeats, block;
    const char *initial; /* the default in the table, or NULL */
    char number[24];     /* text of `initial`, for a mechanism's option */
    enum scope scope;
    size_t offset;
    const struct sample *sample;
};

/* Returns all directives; the last one has no name. */
const struct directive_case *directive_cases(void);

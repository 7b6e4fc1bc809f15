/* SPDX-License-Identifier: BSD-2-Clause */
/* Every directive with values to try. The daemon's tables give the facts about a directive;
 * samples.c adds good values and their settings, unknown to the tables. A directive without a
 * sample fails the tests, and so does a sample without a directive. */
#pragma once

#include "settings/cycle.h"
#include "settings/setting.h"

enum field { FIELD_OTHER, FIELD_NUMBER, FIELD_TEXT };

/* The struct with a field of the table. */
enum field_of { FIELD_OF_CORE, FIELD_OF_EVENTS, FIELD_OF_SERVER, FIELD_OF_UPSTREAM };

struct sample {
    const char *name;
    const char *value;               /* good; of a block: its braces */
    const char *again;               /* another good value, if repeatable; or NULL */
    enum field field;                /* the kind of the table's field */
    int64_t number;                  /* the number that the value sets */
    int64_t initial;                 /* the default number, if not writable */
    const char *text, *initial_text; /* the first is within the directory */
    const char *warning;             /* about a second directive in the block; NULL: none */
    unsigned at;                     /* contexts of one row of several with the name; 0: any */
    void (*check)(const struct cycle *cycle); /* whether the value was set; or NULL */
};

struct directive_case {
    const char *name;
    unsigned at, least, most;
    unsigned anywhere; /* contexts of all rows with the name */
    bool repeats, block;
    const char *initial; /* the default in the table, or NULL: */
    const char *unset;   /* the table's word for no default */
    char number[24];     /* text of `initial`, for a mechanism's option */
    char handler[64];    /* a protocol's option: the directives required beside the option */
    enum field_of field_of;
    size_t offset;
    unsigned feature; /* 1 + the place of the feature with the field's struct; 0: none */
    const struct sample *sample;
};

/* Returns all directives; the last has no name. */
const struct directive_case *directive_cases(void);

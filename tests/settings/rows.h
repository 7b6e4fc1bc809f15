/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises of the manual for every directive. */
#pragma once

#include "settings/cycle.h"
#include "settings/setting.h"

struct row {
    const char *name;
    const char *value;   /* good, with the ";" or the block behind it */
    const char *belongs; /* the place in the words of messages */
    const char *again;   /* another good value, where it may be repeated */
    const char *manual;  /* the default as the manual shows it */
    unsigned at, least, most;
    bool in_core, in_events, in_server; /* struct of its field, which is a number, or ... */
    bool text;                          /* ... a text */
    size_t offset;
    int64_t expected, initial;
    const char *expected_text, *initial_text; /* the first one within the directory */
    void (*check)(const struct cycle *cycle);
};

/* Ends with a row without a name. */
extern const struct row directive_rows[];

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the manual promises of every directive. */
#pragma once

#include "settings/cycle.h"
#include "settings/setting.h"

struct row {
    const char *name;
    const char *value;   /* good, with the ";" or the block behind it */
    const char *belongs; /* as messages name the place */
    const char *again;   /* another good value, where it may be repeated */
    const char *manual;  /* the default as the manual shows it */
    unsigned at, least, most;
    bool in_core, in_events, in_server; /* where its field lies: a number, or ... */
    bool text;                          /* ... a text */
    size_t offset;
    int64_t expected, initial;
    const char *expected_text, *initial_text; /* the first one within the directory */
    void (*check)(const struct fb_cycle *cycle);
};

/* Ends with a row without a name. */
extern const struct row directive_rows[];

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of levels, in both directions. */
#include "base/log_level.h"

#include "base/compiler.h"

#include <assert.h>
#include <string.h>

static const char *const names[] = { "emerg", "alert", "crit", "error", "warn", "notice", "info",
    "debug" };

const char *fb_level_name(enum fb_level level)
{
    assert((unsigned)level < fb_countof(names));
    return names[level];
}

int fb_level_parse(const char *name)
{
    for (unsigned i = 0; i < fb_countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of levels, in both directions. */
#include "base/log_level.h"

#include "base/compiler.h"

#include <assert.h>
#include <string.h>

static const char *const names[] = { "emerg", "alert", "crit", "error", "warn", "notice", "info",
    "debug" };

const char *log_level_name(enum log_level level)
{
    assert((unsigned)level < countof(names));
    return names[level];
}

int log_level_parse(const char *name)
{
    for (unsigned i = 0; i < countof(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of levels: from the number to the name, and from the name to the number. */
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Redirects the calls of a loaded object: to the wrappers of the checked mode. */
#pragma once

#include <stdbool.h>

/* A call, and its replacement. */
struct relink_call {
    const char *name;
    void (*call)(void);
    void (*checked)(void);
};

/* Redirects all calls of the object around the address to the replacements of the table, up to its
 * NULL. False, and nothing has changed: the calls are a part of the object itself, or no object is
 * there. */
bool relink_object(const void *address, const struct relink_call *calls);
/* Whether the build can: the dynamic linker has to list loaded objects. */
bool relink_is_built(void);

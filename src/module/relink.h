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

/* Redirects all calls of the object that the address lies in to what the table, which ends with a
 * NULL, has in their places. False, and nothing has changed: the calls are a part of this object,
 * or there is none. */
bool relink_object(const void *address, const struct relink_call *calls);
/* Whether the build can: the dynamic linker has to list loaded objects. */
bool relink_is_built(void);

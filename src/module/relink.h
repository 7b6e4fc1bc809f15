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

/* Redirects the calls of the object around the address, by the table up to its NULL. False, without
 * a change: no object is there, or the calls are a part of the object. */
bool relink_object(const void *address, const struct relink_call *calls);
/* Whether the build can: the dynamic linker has to list loaded objects. */
bool relink_is_built(void);

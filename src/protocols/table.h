/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in protocols: a server block may use the directives without load_module. Built-in
 * protocols use the SDK like any module, and no further part of the daemon. */
#pragma once

#include <forkbeard/forkbeard.h>

/* Descriptors of the built-in protocols, in the order of protocols.def; NULL after the last. */
extern const fb_protocol *const protocols_builtin[];

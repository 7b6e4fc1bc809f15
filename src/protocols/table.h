/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in protocols: a server block may use their directives without load_module. They use the
 * SDK like any module, and nothing else of the daemon. */
#pragma once

#include <forkbeard/forkbeard.h>

/* Their descriptors, in the order of protocols.def; NULL after the last. */
extern const fb_protocol *const protocols_builtin[];

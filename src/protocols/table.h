/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in protocols: a server's directives may name them without a load_module. */
#pragma once

#include <forkbeard/forkbeard.h>

/* Their descriptors, in the order of protocols.def; NULL behind the last. */
extern const fb_protocol *const protocols_builtin[];

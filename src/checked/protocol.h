/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of protocols in the checked mode. */
#pragma once

#include "checked/checked.h"

/* Returns wrappers of a checked copy, module_copy()'s; NULL without memory. */
const fb_protocol *checked_protocol_make(struct arena *arena, const fb_protocol *copy);

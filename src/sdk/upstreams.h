/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the interface "upstream". */
#pragma once

#include <forkbeard/forkbeard.h>

extern const fb_upstreams sdk_upstreams;

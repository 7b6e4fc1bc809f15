/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the interface "upstream", and that of its wrappers in the checked mode. */
#pragma once

#include <forkbeard/forkbeard.h>

extern const fb_upstreams sdk_upstreams;
/* checked_upstreams.c */
extern const fb_upstreams checked_upstreams;

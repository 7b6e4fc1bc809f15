/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <forkbeard/forkbeard.h>

/* Ends with NULL. */
extern const fb_protocol *const fb_protocols[];

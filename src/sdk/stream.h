/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the interface "stream". */
#pragma once

#include <forkbeard/stream.h>

extern const fb_stream sdk_stream;

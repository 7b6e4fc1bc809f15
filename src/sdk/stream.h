/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the interface "stream", and that of its wrappers in the checked mode. */
#pragma once

#include <forkbeard/stream.h>

extern const fb_stream sdk_stream;
/* checked_stream.c */
extern const fb_stream checked_stream;

/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the interfaces "stream", "upstream" and "metrics". */
#pragma once

#include <forkbeard/forkbeard.h>

extern const fb_stream sdk_stream;
extern const fb_upstreams sdk_upstreams;
extern const fb_metrics sdk_metrics;

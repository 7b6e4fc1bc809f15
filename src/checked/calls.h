/* SPDX-License-Identifier: BSD-2-Clause */
/* The SDK's calls in the checked mode: wrappers of equal types check the arguments and then make
 * the call. A wrapper is named after the call. */
#pragma once

#include "checked/handles.h"
#include "checked/ops.h"

/* The name of the wrapper's call, without "fb_". */
#define CHECKED_CALL (__func__ + sizeof("checked_") - 1)

#define CALL(name) __typeof__(fb_##name) checked_##name;
#include "checked/calls.def"

/* Tables of wrappers of the interfaces "stream" and "upstream". */
extern const fb_stream checked_stream;
extern const fb_upstreams checked_upstreams;

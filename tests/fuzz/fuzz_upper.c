/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "upper" with arbitrary input of a client. */
#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_upper;

FB_TEST_FUZZ(fb_protocol_upper, "upper;")

FB_TEST_FUZZ_MAIN

/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "resp" with arbitrary input of a client. */
#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_resp;

FB_TEST_FUZZ(fb_protocol_resp, "resp;")

FB_TEST_FUZZ_MAIN

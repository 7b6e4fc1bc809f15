/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "mqtt" with arbitrary input of a client. */
#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_mqtt;

FB_TEST_FUZZ(fb_protocol_mqtt, "mqtt;")

FB_TEST_FUZZ_MAIN

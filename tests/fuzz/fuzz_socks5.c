/* SPDX-License-Identifier: BSD-2-Clause */
/* The example "socks5" with arbitrary input of a client. */
#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_socks5;

FB_TEST_FUZZ(fb_protocol_socks5, "socks5; socks5_user me secret;")

FB_TEST_FUZZ_MAIN

/* SPDX-License-Identifier: BSD-2-Clause */
/* The TLS of a client, as a PROXY header of version 2 tells of it. */
#pragma once

#include <forkbeard/stream.h>

/* Writes the type-length-values of the client's TLS; returns the bytes, 0 without TLS. The
 * certificate is among them where the server needs certificates (FB_NEEDS_CERTIFICATES). */
uint32_t ssl_tlvs_write(const struct fb_conn *client, uint8_t out[FB_TLVS_MOST]);

/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4 (Aumasson and Bernstein): a hash of bytes that peers choose, who without the key cannot
 * choose them so that they fall together. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t fb_siphash(const uint64_t key[2], const void *data, size_t n);

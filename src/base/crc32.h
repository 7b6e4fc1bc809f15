/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksum CRC-32 of IEEE 802.3, as zlib has it. Tells bytes apart, and protects nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of all bytes, given the checksum of the preceding bytes (0: no bytes). */
uint32_t crc32_add(uint32_t crc, const void *p, size_t n);

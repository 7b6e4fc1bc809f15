/* SPDX-License-Identifier: BSD-2-Clause */
/* The checksum CRC-32 of IEEE 802.3, as zlib has it. It tells bytes apart, and protects nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Adds bytes to the checksum of those before; 0 is that of none. Returns the checksum of all. */
uint32_t crc32_add(uint32_t crc, const void *p, size_t n);

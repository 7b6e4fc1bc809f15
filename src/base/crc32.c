/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes the checksum by half bytes, with a table of 64 bytes. */
#include "base/crc32.h"

/* Remainders of the half bytes by the polynomial 0xedb88320, whose bits are reflected. */
static const uint32_t remainders[16] = { 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190,
    0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0,
    0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };

uint32_t crc32_add(uint32_t crc, const void *p, size_t n)
{
    const uint8_t *bytes = p;

    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ remainders[crc & 15];
        crc = crc >> 4 ^ remainders[crc & 15];
    }
    return ~crc;
}

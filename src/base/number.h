/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, sizes and times of nginx's form, below INT64_MAX. *out changes only by a success. */
#pragma once

#include <stdint.h>

enum number_status {
    NUMBER_OK,
    NUMBER_MALFORMED, /* no number, or an unknown unit */
    NUMBER_RANGE,     /* a number, but below the least or above the greatest */
};

/* Parses a decimal integer: digits with an optional minus sign. */
enum number_status number_parse(const char *s, int64_t least, int64_t greatest, int64_t *out);
/* Reads bytes: digits and an optional unit k or K, m or M, g or G (powers of 1024). */
enum number_status number_parse_size(const char *s, int64_t least, int64_t greatest, int64_t *out);
/* Reads milliseconds, as "1h 30m": units ms s m h d w M (30 days) y (365 days), larger units first,
 * each once; a number without a unit is seconds. */
enum number_status number_parse_msec(const char *s, int64_t least, int64_t greatest, int64_t *out);
/* Reads microseconds: digits and a unit us or ms, which only 0 may lack. */
enum number_status number_parse_usec(const char *s, int64_t least, int64_t greatest, int64_t *out);

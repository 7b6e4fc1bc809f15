/* SPDX-License-Identifier: BSD-2-Clause */
/* The time as variables show it. It is made once a second, because the sessions of a second share
 * it. */
#pragma once

#include <stdint.h>

struct stream;

struct time_text {
    int64_t second;   /* time of the texts, since the epoch */
    char local[40];   /* 21/Nov/2026:09:30:00 +0100 */
    char iso8601[40]; /* 2026-11-21T09:30:00+01:00 */
};

/* Returns the texts of the loop's present time; they are lent until the next turn. */
const struct time_text *time_text_of(struct stream *stream);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of log lines as text. It is made once a second, because most lines share it with the
 * line before. */
#pragma once

#include <stdint.h>

struct log_stamp {
    int64_t second;  /* time of the texts, since the epoch; -1: none yet */
    char date[24];   /* 2026/11/21 09:30:00 */
    char syslog[16]; /* Nov 21 09:30:00 */
};

/* Makes the texts again if the second is another. */
void log_stamp_update(struct log_stamp *stamp);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A log with lines in memory, for a test to read: the test has to take every logged line, or fails
 * when the log is closed. */
#pragma once

#include "base/log.h"

struct memory_log {
    struct log log; /* for all without a log on the target */
    struct log_target target;
    char text[16384];
};

/* Opens a log of lines up to `level`, which begin with "t: " instead of the time. */
void memory_log_open(struct memory_log *memory, enum log_level level);
/* Returns the text that was logged since the last call, lent until the next. */
const char *memory_log_take(struct memory_log *memory);
/* Fails on lines not taken. */
void memory_log_close(struct memory_log *memory);

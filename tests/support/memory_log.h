/* SPDX-License-Identifier: BSD-2-Clause */
/* A log whose lines stay in memory, where a test reads them: every line that is logged has to be
 * taken by the test, or the test fails when the log is closed. */
#pragma once

#include "base/log.h"

struct memory_log {
    struct log log; /* for whoever has no log of its own on the target */
    struct log_target target;
    char text[16384];
};

/* Opens a log of lines up to `level`, which begin with "t: " instead of the time. */
void memory_log_open(struct memory_log *memory, enum log_level level);
/* Returns the text that was logged since the last call, lent until the next. */
const char *memory_log_take(struct memory_log *memory);
/* Fails on lines not taken. */
void memory_log_close(struct memory_log *memory);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper of the log's tests: a log with one target, and the output. */
#pragma once

#include "base/log.h"
#include "support/test.h"

struct logged {
    struct log log;
    struct log_target target;
    int reader;       /* place where the lines arrive: the same file, or the receiver's socket */
    char text[16384]; /* the last that was read */
};

/* Lines go to an unnamed file. */
void logged_begin(struct logged *logged, enum log_level level);
/* Lines go to a datagram socket; the caller tells the target the socket's kind. */
void logged_begin_socket(struct logged *logged, enum log_level level);
/* Forgets what is in the file. */
void logged_clear(struct logged *logged);
void logged_end(struct logged *logged);

/* Returns everything in the file; or the next datagram, "" if there is none. */
const char *logged_text(struct logged *logged);
const char *logged_datagram(struct logged *logged);

void logged_line(struct logged *logged, const struct log_line *line, const char *format, ...)
    PRINTF_FORMAT(3, 4);

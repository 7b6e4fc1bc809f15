/* SPDX-License-Identifier: BSD-2-Clause */
/* A line in the forms that targets take: text (log_text.c) and JSON (log_json.c). Each form is made
 * once, when the first target asks for it, in memory of its caller. The forms know the line and
 * nothing of logs and targets. */
#pragma once

#include "base/compiler.h"
#include "base/log_line.h"
#include "base/log_stamp.h"

#include <stddef.h>
#include <sys/types.h>

/* Bytes of a line in any form: what a pipe takes whole. */
#define LOG_LINE_MAX 4096

struct log_text {
    char bytes[LOG_LINE_MAX];
    size_t n; /* a byte is always left for the newline */
};

struct log_entry {
    const struct log_line *line;
    const char *plain; /* name in place of the time and the pid, or NULL */
    pid_t pid;
    struct log_stamp *stamp;
    char message[LOG_LINE_MAX]; /* formatted by the caller */
    bool has_text, has_json;    /* forms that were made */
    struct log_text text, json; /* with their newlines */
    size_t head;                /* bytes of the text before the message */
    size_t place;               /* bytes of the text before the line's place, where it has one */
};

const struct log_text *log_text_make(struct log_entry *entry);
const struct log_text *log_json_make(struct log_entry *entry);

/* Add to a text; bytes that a terminal would act on become \xNN, and what has no room is left
 * out. */
void log_text_add(struct log_text *text, const char *s);
void log_text_add_format(struct log_text *text, const char *format, ...) PRINTF_FORMAT(2, 3);

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
#define FB_LOG_LINE_MAX 4096

struct fb_log_text {
    char bytes[FB_LOG_LINE_MAX];
    size_t n; /* a byte is always left for the newline */
};

struct fb_log_entry {
    const struct fb_log_line *line;
    const char *plain; /* name in place of the time and the pid, or NULL */
    pid_t pid;
    struct log_stamp *stamp;
    char message[FB_LOG_LINE_MAX]; /* formatted by the caller */
    bool has_text, has_json;       /* forms that were made */
    struct fb_log_text text, json; /* with their newlines */
    size_t head;                   /* bytes of the text before the message */
};

const struct fb_log_text *fb_log_form_text(struct fb_log_entry *entry);
const struct fb_log_text *fb_log_form_json(struct fb_log_entry *entry);

/* Add to a text; bytes that a terminal would act on become \xNN, and what has no room is left out.
 * */
void fb_log_add(struct fb_log_text *text, const char *s);
void fb_log_add_format(struct fb_log_text *text, const char *format, ...) FB_PRINTF(2, 3);

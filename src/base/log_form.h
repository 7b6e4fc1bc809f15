/* SPDX-License-Identifier: BSD-2-Clause */
/* A line on its way to the targets, in the forms that they take. Private to the log. */
#pragma once

#include "base/log.h"

/* Of a line in any form: what a pipe takes whole. */
#define FB_LOG_LINE_MAX 4096

struct fb_log_text {
    char bytes[FB_LOG_LINE_MAX];
    size_t n; /* one byte is always left for the newline */
};

struct fb_log_entry {
    struct fb_log *log;
    const struct fb_log_line *line;
    char message[FB_LOG_LINE_MAX]; /* as it was given */
    /* made when the first target asks for it: */
    bool has_text, has_json;
    struct fb_log_text text, json; /* with their newlines */
    size_t head;                   /* of the text: what stands before the message */
};

/* The line as text, and as one JSON object. */
const struct fb_log_text *fb_log_form_text(struct fb_log_entry *entry);
const struct fb_log_text *fb_log_form_json(struct fb_log_entry *entry);

/* Texts: what has no room is left out. */
void fb_log_add(struct fb_log_text *text, const char *s);
void fb_log_add_format(struct fb_log_text *text, const char *format, ...) FB_PRINTF(2, 3);

/* Makes the second's texts, if it is another. */
void fb_log_tick(struct fb_log *log);

/* Gives it to a target, which is open. */
void fb_log_deliver(struct fb_log_target *target, struct fb_log_entry *entry);

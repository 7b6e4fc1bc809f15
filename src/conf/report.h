/* SPDX-License-Identifier: BSD-2-Clause */
/* The mistakes of a configuration: collected, then shown to whoever asked. */
#pragma once

#include "base/arena.h"
#include "base/log.h"

#include <bsd/sys/queue.h>

struct fb_conf_word;

#define FB_CONF_MISTAKES_MAX 50

struct fb_conf_mistake {
    STAILQ_ENTRY(fb_conf_mistake) link;
    enum fb_level level; /* FB_EMERG: the configuration is refused; FB_WARN: it is used */
    const char *message; /* one line with file, line and column ... */
    int text_n;          /* ... which so many bytes of it come before */
    const char *file;    /* NULL: it has no place */
    unsigned line, column;
    const char *excerpt; /* the file's line and a line that marks the word, "\n" each; or NULL */
};

/* Of errors and of warnings FB_CONF_MISTAKES_MAX each are kept, and of the same message at the same
 * place (in a file that is included twice) one. */
struct fb_conf_report {
    struct fb_arena *arena;
    STAILQ_HEAD(, fb_conf_mistake) mistakes;
    unsigned error_n; /* how many refuse the configuration, with those that are not kept */
    unsigned dropped_errors, dropped_warnings; /* beyond the maximum, or there was no memory */
};

/* `arena` NULL: mistakes are only counted. */
void fb_conf_report_init(struct fb_conf_report *report, struct fb_arena *arena);

/* Adds "message in FILE:LINE:COLUMN" and marks the word; `word` NULL: the message alone. */
void fb_conf_error(struct fb_conf_report *report, const struct fb_conf_word *word,
    const char *format, ...) FB_PRINTF(3, 4);
void fb_conf_warn(struct fb_conf_report *report, const struct fb_conf_word *word,
    const char *format, ...) FB_PRINTF(3, 4);

/* Every message to the log, in the order in which they were found, and each one's excerpt behind it
 * where `excerpts` is a descriptor, not -1. */
void fb_conf_report_show(const struct fb_conf_report *report, struct fb_log *log, int excerpts);

/* The candidate nearest to `word` (the first of several), or NULL when none is near enough to be
 * meant. `next` gives one candidate a call, and NULL at their end. */
const char *fb_nearest(const char *word, const char *(*next)(void *arg), void *arg);

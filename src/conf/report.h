/* SPDX-License-Identifier: BSD-2-Clause */
/* The report: mistakes of a configuration, collected while reading and shown together at the end by
 * report_show(). A mistake without memory for its text is still counted. */
#pragma once

#include "base/arena.h"
#include "base/log.h"

#include <bsd/sys/queue.h>

struct conf_word;

#define REPORT_MISTAKES_MAX 50

struct report_mistake {
    STAILQ_ENTRY(report_mistake) link;
    enum log_level level; /* LEVEL_EMERG: the configuration is refused; else used */
    const char *message;  /* a line with file, line and column at the end */
    int text_n;           /* bytes of the message before its place */
    const char *file;     /* NULL: it has no place */
    unsigned line, column;
    const char *excerpt; /* the file's line and a line with the word's mark, "\n" each; or NULL */
};

/* Stores at most REPORT_MISTAKES_MAX mistakes of a level; the same message once for each place,
 * because a file can be included twice. */
struct conf_report {
    struct arena *arena;
    STAILQ_HEAD(, report_mistake) mistakes;
    /* errors, dropped errors included; 0: the configuration is accepted */
    unsigned error_n;
    unsigned temporary_n;               /* temporary errors, which may pass */
    unsigned stored[LEVEL_NOTICE + 1];  /* by level */
    unsigned dropped[LEVEL_NOTICE + 1]; /* by level: too many, or no memory */
    /* while a module's default of a directive is set, which stands in no file; else NULL */
    const char *module, *directive;
};

/* `arena` NULL: mistakes are only counted. */
void report_init(struct conf_report *report, struct arena *arena);
/* Adds "message in FILE:LINE:COLUMN", and marks the word, if any. Returns -1. */
int report_error(struct conf_report *report, const struct conf_word *word, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Notes that the last error may be temporary: an unresolved name. */
void report_note_temporary(struct conf_report *report);
void report_warn(struct conf_report *report, const struct conf_word *word, const char *format, ...)
    PRINTF_FORMAT(3, 4);
void report_notice(struct conf_report *report, const struct conf_word *word, const char *format,
    ...) PRINTF_FORMAT(3, 4);
/* Writes all messages to the log in the order of finding, each with its excerpt to the descriptor
 * `excerpts`, unless -1. Diagnostics get errors and warnings at any level of the log. */
void report_show(const struct conf_report *report, struct log *log, int excerpts);
/* A word's place, for lines that a log writes when the configuration is put to use. */
struct report_place {
    struct log_place place;
    const struct conf_word *word;
    struct arena *arena; /* the memory of the excerpt */
};

/* Makes the place of a word, kept with its file; returns the place to set in the log, or NULL for a
 * word without a file. */
const struct log_place *report_place_init(
    struct report_place *place, const struct conf_word *word, struct arena *arena);
/* Writes the word's line and the mark to the descriptor, unless -1. */
void report_show_excerpt(const struct report_place *place, int excerpts);
/* A search for the name meant by a misspelt word, which begins with the word alone. */
struct nearest {
    const char *word;
    const char *found; /* the nearest so far, the first of several; NULL: none is near enough */
    unsigned distance;
};

/* Compares a candidate with the word; the candidate is kept by reference. */
void nearest_try(struct nearest *nearest, const char *candidate);

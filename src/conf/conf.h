/* SPDX-License-Identifier: BSD-2-Clause */
/* The syntax of a configuration: words, directives, blocks and files. conf/ knows no directive by
 * name, reports every mistake with its place, and continues after a mistake if possible. */
#pragma once

#include "base/arena.h"
#include "base/compiler.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct conf_report;

#define CONF_FILE_MAX (16 * 1024 * 1024) /* bytes */
#define CONF_DEPTH_MAX 64                /* blocks within each other */
#define CONF_INCLUDE_MAX 16              /* files within each other */

/* A file as it was read, or the text of the command line's -g. */
struct conf_file {
    STAILQ_ENTRY(conf_file) link;
    const char *name; /* shown in messages: an absolute path, or "command line" */
    const char *text; /* NUL-terminated; may hold more NUL bytes, a lexical error */
    size_t size;
    const struct conf_file *includer; /* NULL: the main file, or a text */
};

struct conf_word {
    const char *text;    /* quotes and escapes resolved */
    const char *written; /* before variables were replaced; NULL: there was none */
    const char *plain;   /* for each byte of the text: not 0 in a value; NULL: all 0 */
    const struct conf_file *file;
    unsigned line, column; /* place in the file, from 1, the column in bytes */
    unsigned width;        /* bytes that a mark covers, quotes included */
};

struct conf_directive {
    STAILQ_ENTRY(conf_directive) link;
    struct conf_word name;
    struct conf_word *args;
    unsigned arg_n;
    struct conf_block *block; /* NULL: a simple directive, ended by ";" */
};

struct conf_block {
    STAILQ_HEAD(, conf_directive) directives;
};

/* Owner of everything that a parse makes. */
struct conf_source {
    struct arena *arena;
    struct arena *trees; /* memory of trees and words: mostly `arena` */
    struct conf_report *report;
    STAILQ_HEAD(, conf_file) files; /* in the order of reading, once a read */
    bool too_deep;                  /* an include was refused: only the main file's are read */
    bool lenient;                   /* an unreadable file is a warning (-t) */
    bool partial;                   /* a file was not read, and may hold missing names */
};

void conf_source_init(struct conf_source *source, struct arena *arena, struct conf_report *report);
/* Parses the file's text up to the first mistake; `unit` is "file" or "parameter". Private to
 * conf/. NULL, after a report, without memory. */
struct conf_block *conf_parse(
    struct conf_source *source, const struct conf_file *file, const char *unit);
/* Reads and parses a file by its absolute path; returns the directives before a lexical error.
 * NULL: the file could not be read. `from` is the word with the name, or NULL: the main file. */
struct conf_block *conf_parse_file(
    struct conf_source *source, const char *path, const struct conf_word *from);
/* Parses a copy of a text, named `name` in messages. NULL, after a report, for a text too large or
 * without memory. */
struct conf_block *conf_parse_text(
    struct conf_source *source, const char *name, const char *text, size_t size);
/* Reads the files of an "include" in the order of names: `word` is the argument, `pattern` an
 * absolute path or glob. Calls `each`, which returns -1 after a report, with the directives of each
 * file. Mistakes are a missing path without wildcards, a file that includes itself, and a depth
 * beyond CONF_INCLUDE_MAX; after the last two only the main file's includes are read on, for a
 * single report. Returns 0, or -1 after a report. */
int conf_include(struct conf_source *source, const struct conf_word *word, const char *pattern,
    int (*each)(void *arg, struct conf_block *block), void *arg);
/* Every file's name and text, as `-T` shows them; a file read twice is shown once. */
void conf_dump(const struct conf_source *source, FILE *out);

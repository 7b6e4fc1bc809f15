/* SPDX-License-Identifier: BSD-2-Clause */
/* The syntax of a configuration: words, directives, blocks and files. conf/ knows no directive by
 * name, reports every mistake with its place, and continues after a mistake where it can. */
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
    const char *plain;   /* a byte for each of the text's: not 0 in a value, and so no syntax;
                          * NULL: all 0, or of no account */
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

/* Parses the file's text up to its end or the first mistake; `unit` is "file" or "parameter".
 * Private to conf/. NULL, after a report, without memory for a tree. */
struct conf_block *conf_parse(
    struct conf_source *source, const struct conf_file *file, const char *unit);
/* Reads and parses a file. All mistakes go to the report; returns the directives that could be
 * understood (a lexical error ends its file, and the directives before the error are kept). NULL
 * when the file could not be read: `from` is the word with its name, or NULL for the main file.
 * `path` is absolute. */
struct conf_block *conf_parse_file(
    struct conf_source *source, const char *path, const struct conf_word *from);

/* Parses a text, named `name` in messages. The text is copied; it is none of the source's files.
 * NULL, after a report, when it is too large or memory has run out. */
struct conf_block *conf_parse_text(
    struct conf_source *source, const char *name, const char *text, size_t size);

/* Reads the files of an "include": `word` is its argument, `pattern` the argument as an absolute
 * path or glob. Parses the files in the order of their names, and calls `each` for every file, with
 * the directives that could be understood. `each` returns -1 after a report. A pattern without
 * matches is accepted; a missing path without wildcards, a file that includes itself, and including
 * deeper than CONF_INCLUDE_MAX are mistakes. After one of the last two only the main file's
 * includes are read on, so that the mistake is reported once. A file that the user may not read is
 * only a warning where the source is lenient. Returns 0, or -1 when anything was reported. */
int conf_include(struct conf_source *source, const struct conf_word *word, const char *pattern,
    int (*each)(void *arg, struct conf_block *block), void *arg);

/* Every file's name and text, as `-T` shows them; a file read twice is shown once. */
void conf_dump(const struct conf_source *source, FILE *out);

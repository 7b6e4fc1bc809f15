/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration's syntax: words, directives, blocks and files. No directive is known here. */
#pragma once

#include "base/arena.h"
#include "base/compiler.h"

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct fb_conf_report;

#define FB_CONF_FILE_MAX (16 * 1024 * 1024) /* bytes */
#define FB_CONF_DEPTH_MAX 64                /* blocks within each other */
#define FB_CONF_INCLUDE_MAX 16              /* files within each other */

/* A file as it was read, or the text of the command line's -g. */
struct fb_conf_file {
    STAILQ_ENTRY(fb_conf_file) link;
    const char *name; /* as it is shown: an absolute path, or "command line" */
    const char *text; /* NUL-terminated; may hold other NUL bytes, which are a lexical error */
    size_t size;
    const struct fb_conf_file *includer; /* NULL: the main file, or a text */
};

struct fb_conf_word {
    const char *text;                /* quotes and escapes resolved */
    const char *written;             /* before variables were replaced; NULL: there was none */
    const struct fb_conf_file *file; /* where it stands ... */
    unsigned line, column;           /* ... counted from 1, the column in bytes */
    unsigned width;                  /* in bytes, quotes included, to mark it */
};

struct fb_conf_directive {
    STAILQ_ENTRY(fb_conf_directive) link;
    struct fb_conf_word name;
    struct fb_conf_word *args;
    unsigned arg_n;
    struct fb_conf_block *block; /* NULL: a simple directive, ended by ";" */
};

struct fb_conf_block {
    STAILQ_HEAD(, fb_conf_directive) directives;
};

/* Owner of everything that a parse makes. */
struct fb_conf_source {
    struct fb_arena *arena;
    struct fb_conf_report *report;
    STAILQ_HEAD(, fb_conf_file) files; /* in the order in which they were read, each once a read */
    bool too_deep;                     /* an include was refused: only the main file's are read */
    bool lenient;                      /* what may not be read is a warning (-t) ... */
    bool partial; /* ... and something was not: what is missing may lie there */
};

void fb_conf_source_init(
    struct fb_conf_source *source, struct fb_arena *arena, struct fb_conf_report *report);

/* Reads and parses a file. All mistakes go to the report; what could be understood is returned (a
 * lexical error ends its file, and the directives before it are kept). NULL when the file could not
 * be read: `from` is the word that named it, or NULL for the main file. `path` is absolute. */
struct fb_conf_block *fb_conf_parse_file(
    struct fb_conf_source *source, const char *path, const struct fb_conf_word *from);

/* Parses a text, named `name` in messages. The text is copied; it is none of the source's files.
 * NULL, after a report, when it is too large or memory has run out. */
struct fb_conf_block *fb_conf_parse_text(
    struct fb_conf_source *source, const char *name, const char *text, size_t size);

/* What an "include" stands for: `word` is its argument, `pattern` the same as an absolute path or
 * glob; its files are parsed in the order of their names, and `each` is called for every one, with
 * what could be understood of it, until none is left. `each` returns -1 after a report. A pattern
 * that matches nothing is no mistake, a path without wildcards that does not exist is one. So is a
 * file that includes itself, and including deeper than FB_CONF_INCLUDE_MAX; after one of them only
 * the main file's includes are still read, so that it is reported once. Returns 0, or -1 when
 * anything was reported. What the user may not read is only a warning where the source is lenient. */
int fb_conf_include(struct fb_conf_source *source, const struct fb_conf_word *word,
    const char *pattern, int (*each)(void *arg, struct fb_conf_block *block), void *arg);

/* Every file's name and text, as `-T` shows them; a file that was read twice is shown once. */
void fb_conf_dump(const struct fb_conf_source *source, FILE *out);

/* SPDX-License-Identifier: BSD-2-Clause */
/* What is told to whoever has asked for a change: the grave lines of all processes that take part in
 * it, in memory that they share. A log has its lines told (log.h), and the report of a configuration
 * those that have a place in a file.
 *
 * A process that came too late, or foreign code that went astray, may write at any time: who reads is
 * given copies, and believes nothing. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FB_TOLD_MAX 128 /* lines; more are only counted */

struct fb_told_line {
    _Atomic uint32_t whole; /* else it is being written, or its writer has died */
    uint32_t level;         /* enum fb_level */
    uint32_t line, column;  /* in `file`; 0: it has no place */
    char text[2048];
    char file[1024];
    char excerpt[2816]; /* the file's line and its mark, or "" */
};

struct fb_told {
    _Atomic uint32_t round; /* lines of other rounds are not taken */
    _Atomic uint32_t n;     /* lines begun */
    struct fb_told_line lines[FB_TOLD_MAX];
};

/* What a line says; strings may be NULL. */
struct fb_telling {
    uint32_t level, line, column;
    const char *text, *file, *excerpt;
    int text_n; /* bytes of the text */
};

/* A mapping that children share; NULL with errno. */
struct fb_told *fb_told_create(void);
void fb_told_destroy(struct fb_told **told);

/* Forgets what was told, and returns the number of the round that begins. */
uint32_t fb_told_begin(struct fb_told *told);
/* Adds a line, from any process; what is too long is cut. */
void fb_told_add(struct fb_told *told, uint32_t round, const struct fb_telling *telling);

/* How many there are, at most FB_TOLD_MAX. */
uint32_t fb_told_n(const struct fb_told *told);
/* Copies one; false if it was not written to its end. */
bool fb_told_get(const struct fb_told *told, uint32_t i, struct fb_told_line *copy);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a configuration text, by nginx's rules. Private to conf/. */
#pragma once

#include "conf/conf.h"

#include <stdbool.h>

enum fb_token {
    FB_TOKEN_WORD,
    FB_TOKEN_SEMICOLON,
    FB_TOKEN_OPEN,  /* { */
    FB_TOKEN_CLOSE, /* } */
    FB_TOKEN_END,
    FB_TOKEN_FAILED, /* after a report; the text cannot be read on */
};

struct fb_lexer {
    struct fb_conf_source *source;
    const struct fb_conf_file *file;
    const char *unit; /* name of the text in messages: "file" or "parameter" */
    const char *at, *end;
    const char *line_start;
    unsigned line;
    unsigned quote_line; /* line where the last word's quote began; 0: the word was not quoted */
};

void fb_lexer_init(struct fb_lexer *lexer, struct fb_conf_source *source,
    const struct fb_conf_file *file, const char *unit);

/* Reads the next token; *word says where it stands, and what it is when it is a word. */
enum fb_token fb_lexer_next(struct fb_lexer *lexer, struct fb_conf_word *word);

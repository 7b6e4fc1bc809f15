/* SPDX-License-Identifier: BSD-2-Clause */
/* The lexer: splits the text of a configuration into words and punctuation by nginx's rules,
 * without knowledge of directives and blocks. Private to conf/. */
#pragma once

#include "conf/conf.h"

#include <stdbool.h>

enum lexer_token {
    TOKEN_WORD,
    TOKEN_SEMICOLON,
    TOKEN_OPEN,  /* { */
    TOKEN_CLOSE, /* } */
    TOKEN_END,
    TOKEN_FAILED, /* after a report; the text cannot be read on */
};

struct lexer {
    struct conf_source *source;
    const struct conf_file *file;
    const char *unit; /* name of the text in messages: "file" or "parameter" */
    const char *at, *end;
    const char *line_start;
    unsigned line;
    unsigned quote_line; /* line where the last word's quote began; 0: the word was not quoted */
};

void lexer_init(struct lexer *lexer, struct conf_source *source, const struct conf_file *file,
    const char *unit);
/* Reads the next token; *word gets the place and, if the token is a word, the text. */
enum lexer_token lexer_next(struct lexer *lexer, struct conf_word *word);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts a text into words, which end at white space, ";" or "{" alone: "}" and "#" within a word
 * belong to the word, as in nginx, so that "a}" is a word and " }" is not. */
#include "conf/lexer.h"

#include "conf/report.h"

#include <assert.h>
#include <string.h>

void lexer_init(
    struct lexer *lexer, struct conf_source *source, const struct conf_file *file, const char *unit)
{
    const char *nul = memchr(file->text, '\0', file->size);

    *lexer = (struct lexer) {
        .source = source,
        .file = file,
        .unit = unit,
        .at = file->text,
        .end = nul != NULL ? nul : file->text + file->size,
        .line_start = file->text,
        .line = 1,
    };
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void step_byte(struct lexer *lexer)
{
    assert(lexer->at < lexer->end);
    if (*lexer->at++ == '\n') {
        lexer->line++;
        lexer->line_start = lexer->at;
    }
}

static void mark_word(const struct lexer *lexer, struct conf_word *word, unsigned width)
{
    *word = (struct conf_word) {
        .file = lexer->file,
        .line = lexer->line,
        .column = (unsigned)(lexer->at - lexer->line_start) + 1,
        .width = width,
    };
}

static void skip_blank(struct lexer *lexer)
{
    bool comment = false;

    for (; lexer->at < lexer->end; step_byte(lexer)) {
        if (*lexer->at == '#')
            comment = true;
        if (*lexer->at == '\n')
            comment = false;
        if (!comment && !is_space(*lexer->at))
            return;
    }
}

/* The bytes of the character at `at`, so that a message does not show half a character. */
static unsigned character_width(const struct lexer *lexer)
{
    const char *p = lexer->at + 1;

    while (p < lexer->end && p - lexer->at < 4 && ((unsigned char)*p & 0xc0) == 0x80)
        p++;
    return (unsigned)(p - lexer->at);
}

static bool may_follow_quote(char c)
{
    /* ")" because nginx's "if" is written ("$a" = "b") */
    return is_space(c) || c == ';' || c == '{' || c == ')';
}

static enum lexer_token fail_after_quote(struct lexer *lexer, struct conf_word *word)
{
    mark_word(lexer, word, character_width(lexer));
    if (lexer->quote_line == lexer->line)
        report_error(lexer->source->report, word,
            "unexpected \"%.*s\" after a quoted word, expecting white space, \";\" or \"{\"",
            (int)word->width, lexer->at);
    else
        report_error(lexer->source->report, word,
            "unexpected \"%.*s\" after a quoted word, expecting white space, \";\" or \"{\"; "
            "the quote was opened at line %u",
            (int)word->width, lexer->at, lexer->quote_line);
    return TOKEN_FAILED;
}

/* Ends the text, or reports the NUL byte at its early end. */
static enum lexer_token text_end(struct lexer *lexer, struct conf_word *word)
{
    mark_word(lexer, word, 1);
    if (lexer->end == lexer->file->text + lexer->file->size)
        return TOKEN_END;
    report_error(lexer->source->report, word, "unexpected NUL byte, expecting text");
    return TOKEN_FAILED;
}

static enum lexer_token make_punctuation(
    struct lexer *lexer, struct conf_word *word, const char *text, enum lexer_token token)
{
    mark_word(lexer, word, 1);
    word->text = text;
    lexer->at++;
    return token;
}

/* Returns the byte for which `\` and the next byte stand; '\0': for themselves. */
static char escaped_byte(char c)
{
    switch (c) {
    case '"':
    case '\'':
    case '\\':
        return c;
    case 't':
        return '\t';
    case 'r':
        return '\r';
    case 'n':
        return '\n';
    default:
        return '\0';
    }
}

/* Makes the word of the `n` bytes at `raw`, within the quotes. */
static enum lexer_token finish_word(
    struct lexer *lexer, struct conf_word *word, const char *raw, size_t n)
{
    char *text = arena_alloc(lexer->source->trees, n + 1), *to = text;

    assert(word->width >= n);
    if (text == NULL) {
        report_error(lexer->source->report, word, "out of memory");
        return TOKEN_FAILED;
    }
    for (const char *end = raw + n; raw < end; raw++) {
        char c = *raw == '\\' && end - raw > 1 ? escaped_byte(raw[1]) : '\0';

        if (c != '\0')
            raw++;
        *to++ = c != '\0' ? c : *raw;
    }
    word->text = text;
    return TOKEN_WORD;
}

static enum lexer_token fail_open_quote(
    struct lexer *lexer, struct conf_word *word, const char *opening)
{
    struct conf_word end;

    if (text_end(lexer, &end) == TOKEN_FAILED)
        return TOKEN_FAILED;
    word->width = (unsigned)(lexer->end - opening);
    report_error(lexer->source->report, word,
        "unexpected end of %s, the quote (%c) opened at line %u is not closed", lexer->unit,
        *opening, word->line);
    return TOKEN_FAILED;
}

static enum lexer_token quoted_word(struct lexer *lexer, struct conf_word *word)
{
    const char *opening = lexer->at, *closing;

    mark_word(lexer, word, 0);
    for (step_byte(lexer); lexer->at < lexer->end && *lexer->at != *opening; step_byte(lexer)) {
        if (*lexer->at == '\\' && lexer->end - lexer->at > 1)
            step_byte(lexer);
    }
    if (lexer->at == lexer->end)
        return fail_open_quote(lexer, word, opening);

    closing = lexer->at;
    step_byte(lexer);
    word->width = (unsigned)(lexer->at - opening);
    lexer->quote_line = word->line;
    return finish_word(lexer, word, opening + 1, (size_t)(closing - opening) - 1);
}

static enum lexer_token plain_word(struct lexer *lexer, struct conf_word *word)
{
    const char *start = lexer->at;
    bool variable = false; /* the "{" of "${" opens no block */

    mark_word(lexer, word, 0);
    for (; lexer->at < lexer->end; step_byte(lexer)) {
        char c = *lexer->at;

        if (c == '{' && variable)
            continue;
        if (is_space(c) || c == ';' || c == '{')
            break;
        variable = c == '$';
        if (c == '\\' && lexer->end - lexer->at > 1)
            step_byte(lexer);
    }
    word->width = (unsigned)(lexer->at - start);
    return finish_word(lexer, word, start, word->width);
}

enum lexer_token lexer_next(struct lexer *lexer, struct conf_word *word)
{
    if (lexer->quote_line != 0 && lexer->at < lexer->end && !may_follow_quote(*lexer->at))
        return fail_after_quote(lexer, word);
    lexer->quote_line = 0;

    skip_blank(lexer);
    assert(lexer->line_start <= lexer->at && lexer->at <= lexer->end);
    if (lexer->at == lexer->end)
        return text_end(lexer, word);
    switch (*lexer->at) {
    case ';':
        return make_punctuation(lexer, word, ";", TOKEN_SEMICOLON);
    case '{':
        return make_punctuation(lexer, word, "{", TOKEN_OPEN);
    case '}':
        return make_punctuation(lexer, word, "}", TOKEN_CLOSE);
    case '"':
    case '\'':
        return quoted_word(lexer, word);
    default:
        return plain_word(lexer, word);
    }
}

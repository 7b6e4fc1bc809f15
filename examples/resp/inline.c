/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses commands typed by a person: words on a line, in quotes where they have spaces or bytes
 * that cannot be typed. Words are copied, because quotes and escapes are not part of them. */
#include "resp.h"

#include <ctype.h>
#include <string.h>

/* The rest of the line, and of the room for its words. */
struct line {
    const uint8_t *p, *end;
    char *out;
};

static int is_hex(const struct line *line, int at)
{
    return line->end - line->p > at && isxdigit(line->p[at]);
}

static int hex_value(uint8_t digit)
{
    return isdigit(digit) ? digit - '0' : tolower(digit) - 'a' + 10;
}

/* Reads an escape, after its backslash, within double quotes. */
static char take_escape(struct line *line)
{
    static const char escapes[] = "n\nr\rt\tb\ba\a";
    uint8_t c = *line->p++;

    if (c == 'x' && is_hex(line, 0) && is_hex(line, 1)) {
        line->p += 2;
        return (char)(hex_value(line->p[-2]) << 4 | hex_value(line->p[-1]));
    }
    for (const char *escape = escapes; *escape != '\0'; escape += 2)
        if (*escape == (char)c)
            return escape[1];
    return (char)c;
}

/* Reads a word after its opening quote. A space or the end of the line must follow the closing
 * quote; -1 otherwise. */
static int take_quoted(struct line *line, uint8_t quote)
{
    while (line->p < line->end && *line->p != quote) {
        uint8_t c = *line->p++;

        if (c == '\\' && line->p < line->end && (quote == '"' || *line->p == '\''))
            *line->out++ = take_escape(line);
        else
            *line->out++ = (char)c;
    }
    if (line->p == line->end)
        return -1;
    line->p++;
    return line->p == line->end || isspace(*line->p) ? 0 : -1;
}

static int take_word(struct line *line, fb_bytes *word)
{
    char *begin = line->out;

    while (line->p < line->end && !isspace(*line->p)) {
        uint8_t c = *line->p++;

        if (c != '"' && c != '\'')
            *line->out++ = (char)c;
        else if (take_quoted(line, c) == -1)
            return -1;
    }
    *word = (fb_bytes) { (uint8_t *)begin, (size_t)(line->out - begin) };
    return 0;
}

enum resp_parsed resp_parse_inline(struct resp_parser *parser, fb_bytes in)
{
    size_t most = in.n < RESP_LINE_MAX ? in.n : RESP_LINE_MAX;
    const uint8_t *end = memchr(in.p, '\n', most);
    struct line line = { .p = in.p, .end = end, .out = parser->room->line };

    if (end == NULL && in.n < RESP_LINE_MAX) {
        parser->need = in.n + 1;
        return RESP_PARTIAL;
    }
    parser->n = 0;
    while (end != NULL) {
        while (line.p < end && isspace(*line.p))
            line.p++;
        if (line.p == end) {
            parser->used = (size_t)(end - in.p) + 1;
            return RESP_WHOLE;
        }
        if (parser->n == RESP_WORDS_MAX)
            break;
        if (take_word(&line, &parser->room->words[parser->n++]) == -1)
            return resp_broken(parser, "Protocol error: unbalanced quotes in request");
    }
    return resp_broken(parser, "Protocol error: too big inline request");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses commands in place: the words of a complete command point into the input. Of an incomplete
 * command only the number of needed bytes is remembered. A second parse costs little, because words
 * are skipped by length and not read. */
#include "resp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum resp_parsed resp_broken(struct resp_parser *parser, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(parser->error, sizeof(parser->error), format, args);
    va_end(args);
    return RESP_BROKEN;
}

static enum resp_parsed wait_for(struct resp_parser *parser, size_t need)
{
    parser->need = need;
    return RESP_PARTIAL;
}

int resp_is(fb_bytes text, const char *word)
{
    return strlen(word) == text.n && strncasecmp((const char *)text.p, word, text.n) == 0;
}

int resp_number(fb_bytes text, int64_t *out)
{
    const uint64_t most = INT64_MAX;
    size_t i = text.n > 0 && text.p[0] == '-';
    uint64_t limit = most + i, number = 0;

    if (i == text.n || (text.p[i] == '0' && text.n > 1))
        return -1;
    for (size_t at = i; at < text.n; at++) {
        unsigned digit = (unsigned)text.p[at] - '0';

        if (digit > 9 || number > (limit - digit) / 10)
            return -1;
        number = number * 10 + digit;
    }
    *out = i > 0 ? (int64_t)(0 - number) : (int64_t)number;
    return 0;
}

/* Reads the number of a line "*12\r\n" or "$12\r\n" at *at, and moves *at after it; errors name it
 * `what`. */
static enum resp_parsed take_number(
    struct resp_parser *parser, fb_bytes in, size_t *at, int64_t *number, const char *what)
{
    const size_t longest = 21; /* a letter, a sign and 19 digits */
    size_t begin = *at + 1, end = begin;

    while (end < in.n && in.p[end] != '\r' && end - *at <= longest)
        end++;
    if (end == in.n || (in.p[end] == '\r' && end + 1 == in.n))
        return wait_for(parser, in.n + 1);
    if (resp_number((fb_bytes) { in.p + begin, end - begin }, number) == -1)
        return resp_broken(parser, "Protocol error: invalid %s length", what);
    *at = end + 2;
    return RESP_WHOLE;
}

/* Reads the word at *at, "$3\r\nfoo\r\n". */
static enum resp_parsed take_word(
    struct resp_parser *parser, fb_bytes in, size_t *at, fb_bytes *word)
{
    enum resp_parsed parsed;
    int64_t length;

    if (*at == in.n)
        return wait_for(parser, in.n + 1);
    if (in.p[*at] != '$')
        return resp_broken(parser, "Protocol error: expected '$', got '%c'", in.p[*at]);
    parsed = take_number(parser, in, at, &length, "bulk");
    if (parsed != RESP_WHOLE)
        return parsed;
    if (length < 0 || (uint64_t)length > parser->bulk_max)
        return resp_broken(parser, "Protocol error: invalid bulk length");
    if (in.n - *at < (size_t)length + 2)
        return wait_for(parser, *at + (size_t)length + 2);
    *word = (fb_bytes) { in.p + *at, (size_t)length };
    *at += (size_t)length + 2;
    return RESP_WHOLE;
}

enum resp_parsed resp_parse(struct resp_parser *parser, fb_bytes in)
{
    enum resp_parsed parsed;
    size_t at = 0;
    int64_t n;

    if (in.p[0] != '*')
        return resp_parse_inline(parser, in);
    parsed = take_number(parser, in, &at, &n, "multibulk");
    if (parsed != RESP_WHOLE)
        return parsed;
    if (n > RESP_WORDS_MAX)
        return resp_broken(parser, "Protocol error: invalid multibulk length");
    parser->n = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < parser->n; i++) {
        parsed = take_word(parser, in, &at, &parser->room->words[i]);
        if (parsed != RESP_WHOLE)
            return parsed;
    }
    parser->used = at;
    return RESP_WHOLE;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads JSON without building anything: a search for a value walks over those before it. Depth
 * is bounded, so that no text can exhaust the stack. */
#include "base/json.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

static const struct json_value none;

static const char *skip_value(const char *p, const char *end, unsigned depth);

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Reads the four hexadecimal digits of \u; -1 where they are none. */
static int hex4(const char *p, const char *end)
{
    int code = 0;

    for (int i = 0; i < 4; i++, p++) {
        int digit;

        if (p >= end)
            return -1;
        if (*p >= '0' && *p <= '9')
            digit = *p - '0';
        else if ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'f')
            digit = (*p | 0x20) - 'a' + 10;
        else
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

static const char *skip_string(const char *p, const char *end)
{
    if (p >= end || *p != '"')
        return NULL;
    for (p++; p < end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return NULL;
        if (*p != '\\')
            continue;
        if (++p >= end || strchr("\"\\/bfnrtu", *p) == NULL || *p == '\0')
            return NULL;
        if (*p == 'u' && hex4(p + 1, end) == -1)
            return NULL;
    }
    return p < end ? p + 1 : NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
    const char *start = p;

    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > start ? p : NULL;
}

static const char *skip_number(const char *p, const char *end)
{
    if (p < end && *p == '-')
        p++;
    if (p + 1 < end && *p == '0' && p[1] >= '0' && p[1] <= '9')
        return NULL;
    p = skip_digits(p, end);
    if (p != NULL && p < end && *p == '.')
        p = skip_digits(p + 1, end);
    if (p == NULL || p >= end || (*p | 0x20) != 'e')
        return p;
    p++;
    if (p < end && (*p == '+' || *p == '-'))
        p++;
    return skip_digits(p, end);
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);

    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

/* Skips the name of a member and its colon. */
static const char *skip_name(const char *p, const char *end)
{
    p = skip_string(p, end);
    if (p != NULL)
        p = skip_blanks(p, end);
    return p != NULL && p < end && *p == ':' ? skip_blanks(p + 1, end) : NULL;
}

static const char *skip_level(const char *p, const char *end, unsigned depth)
{
    bool object = *p == '{';
    char last = object ? '}' : ']';

    if (depth == JSON_DEPTH_MAX)
        return NULL;
    p = skip_blanks(p + 1, end);
    if (p < end && *p == last)
        return p + 1;
    for (;;) {
        if (object)
            p = skip_name(p, end);
        if (p != NULL)
            p = skip_value(p, end, depth + 1);
        if (p == NULL)
            return NULL;
        p = skip_blanks(p, end);
        if (p < end && *p == last)
            return p + 1;
        if (p >= end || *p != ',')
            return NULL;
        p = skip_blanks(p + 1, end);
    }
}

/* Returns the end of the value that begins at p; NULL where it is not well-formed. */
static const char *skip_value(const char *p, const char *end, unsigned depth)
{
    if (p >= end)
        return NULL;
    switch (*p) {
    case '{':
    case '[':
        return skip_level(p, end, depth);
    case '"':
        return skip_string(p, end);
    case 't':
        return skip_word(p, end, "true");
    case 'f':
        return skip_word(p, end, "false");
    case 'n':
        return skip_word(p, end, "null");
    default:
        return skip_number(p, end);
    }
}

struct json_value json_parse(const char *text, size_t n)
{
    const char *end = text + n, *start = skip_blanks(text, end);
    const char *behind = skip_value(start, end, 0);

    if (behind == NULL || skip_blanks(behind, end) != end)
        return none;
    return (struct json_value) { start, (size_t)(behind - start) };
}

static bool begins_with(struct json_value value, char first)
{
    return value.text != NULL && value.text[0] == first;
}

/* Returns the value at p, which is known to be well-formed. */
static struct json_value value_at(const char *p, const char *end)
{
    const char *behind = skip_value(p, end, 0);

    return behind == NULL ? none : (struct json_value) { p, (size_t)(behind - p) };
}

struct json_value json_member(struct json_value object, const char *name)
{
    struct json_value key, value;
    const char *p, *end;
    char text[64];

    if (!begins_with(object, '{'))
        return none;
    end = object.text + object.n;
    p = skip_blanks(object.text + 1, end);
    while (p < end && *p == '"') {
        key = value_at(p, end);
        p = skip_name(p, end);
        value = p == NULL ? none : value_at(p, end);
        if (value.text == NULL)
            return none;
        if (json_text(key, text, sizeof(text)) && strcmp(text, name) == 0)
            return value;
        p = skip_blanks(value.text + value.n, end);
        if (p < end && *p == ',')
            p = skip_blanks(p + 1, end);
    }
    return none;
}

struct json_value json_next(struct json_value array, struct json_value last)
{
    const char *end, *p;

    if (!begins_with(array, '['))
        return none;
    end = array.text + array.n;
    p = skip_blanks(last.text == NULL ? array.text + 1 : last.text + last.n, end);
    if (last.text != NULL && p < end && *p == ',')
        p = skip_blanks(p + 1, end);
    return p < end && *p != ']' ? value_at(p, end) : none;
}

static size_t encode_utf8(unsigned code, char out[4])
{
    if (code == 0) /* a NUL would end the string */
        code = 0xfffd;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Decodes a \u escape after its "u", or a surrogate pair of two; *p is moved to the text after
 * it. */
static unsigned take_code(const char **p, const char *end)
{
    int high = hex4(*p, end), low = -1;

    *p += 4;
    if (high < 0xd800 || high > 0xdfff)
        return (unsigned)high;
    if (high < 0xdc00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u')
        low = hex4(*p + 2, end);
    if (low < 0xdc00 || low > 0xdfff)
        return 0xfffd;
    *p += 6;
    return 0x10000 + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00);
}

/* Decodes the characters after a backslash; *p is moved to the text after them. */
static size_t take_escape(const char **p, const char *end, char out[4])
{
    static const char names[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    char c = *(*p)++;
    const char *name = strchr(names, c);

    if (c == 'u')
        return encode_utf8(take_code(p, end), out);
    out[0] = name != NULL ? meanings[name - names] : c;
    return 1;
}

bool json_text(struct json_value value, char *text, size_t size)
{
    const char *p, *end;
    size_t n = 0;

    text[0] = '\0';
    if (!begins_with(value, '"'))
        return false;
    p = value.text + 1;
    end = value.text + value.n - 1;
    while (p < end) {
        char piece[4] = { *p };
        size_t length = 1;

        if (*p++ == '\\')
            length = take_escape(&p, end, piece);
        if (n + length >= size)
            break;
        memcpy(text + n, piece, length);
        n += length;
    }
    text[n] = '\0';
    return true;
}

int64_t json_integer(struct json_value value, int64_t otherwise)
{
    char text[32];
    int64_t n;

    if (value.text == NULL || value.n >= sizeof(text))
        return otherwise;
    snprintf(text, sizeof(text), "%.*s", (int)value.n, value.text);
    return number_parse(text, INT64_MIN, INT64_MAX, &n) == NUMBER_OK ? n : otherwise;
}

bool json_is_true(struct json_value value)
{
    return value.n == 4 && memcmp(value.text, "true", 4) == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON into memory that grows, with commas and the ends of levels by itself; asserts that
 * the caller closes each level. Reads JSON without building anything: a search walks over the
 * preceding values. Depth is bounded, so that no text can exhaust the stack. */
#include "base/json.h"

#include "base/number.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 512

void json_begin(struct json *json)
{
    *json = (struct json) { .text = NULL };
}

char *json_end(struct json *json, size_t *n)
{
    char *text = json->text;

    assert(json->depth == 0);
    *n = json->n + 1;
    if (!json->failed && text != NULL) {
        memcpy(text + json->n, "\n", 2);
    } else {
        free(text);
        text = NULL;
    }
    json_begin(json);
    return text;
}

/* Appends bytes, and leaves room for the two bytes that end the line. */
static void append_bytes(struct json *json, const char *bytes, size_t n)
{
    size_t size = json->size > 0 ? json->size : SIZE_MIN;
    char *larger;

    while (size - json->n <= n + 1)
        size *= 2;
    if (json->failed)
        return;
    if (size > json->size) {
        larger = realloc(json->text, size);
        if (larger == NULL) {
            json->failed = true;
            return;
        }
        json->text = larger;
        json->size = size;
    }
    memcpy(json->text + json->n, bytes, n);
    json->n += n;
}

static void append_text(struct json *json, const char *text)
{
    append_bytes(json, text, strlen(text));
}

/* Returns the code of a control character (below U+0020, U+007F to U+009F), or 0. */
static unsigned control_code(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < 0x20 || *s == 0x7f ? *s : 0;
    return n == 2 && s[0] == 0xc2 && s[1] < 0xa0 ? s[1] : 0;
}

static size_t escape_control(unsigned code, char out[JSON_ESCAPED_MAX])
{
    static const char hex[] = "0123456789abcdef";
    const char letter = code == '\n' ? 'n' : code == '\t' ? 't' : code == '\r' ? 'r' : 'u';

    out[0] = '\\';
    out[1] = letter;
    if (letter != 'u')
        return 2;
    out[2] = out[3] = '0';
    out[4] = hex[code >> 4];
    out[5] = hex[code & 15];
    return 6;
}

size_t json_escape(const char **s, char out[JSON_ESCAPED_MAX])
{
    const unsigned char *c = (const unsigned char *)*s;
    size_t n = utf8_character(*s);
    unsigned code = control_code(c, n);

    *s += n > 0 ? n : 1;
    if (n == 0) {
        memcpy(out, "\\ufffd", 6);
        return 6;
    }
    if (code != 0)
        return escape_control(code, out);
    if (*c == '"' || *c == '\\') {
        out[0] = '\\';
        out[1] = (char)*c;
        return 2;
    }
    memcpy(out, c, n);
    return n;
}

/* Counts the first bytes that stand for themselves. */
static size_t count_plain(const char *s)
{
    size_t n = 0;

    while (s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

static void append_string(struct json *json, const char *value)
{
    char c[JSON_ESCAPED_MAX];
    size_t n;

    append_bytes(json, "\"", 1);
    for (;;) {
        n = count_plain(value);
        append_bytes(json, value, n);
        value += n;
        if (*value == '\0')
            break;
        n = json_escape(&value, c);
        append_bytes(json, c, n);
    }
    append_bytes(json, "\"", 1);
}

/* Writes the comma and the key before a value. */
static void begin_value(struct json *json, const char *key)
{
    if (json->comma)
        append_text(json, ",");
    json->comma = true;
    if (key == NULL)
        return;
    append_string(json, key);
    append_text(json, ":");
}

static void open_level(struct json *json, const char *key, const char *start, char end)
{
    assert(json->depth < JSON_DEPTH_MAX);
    begin_value(json, key);
    append_text(json, start);
    json->comma = false;
    json->ends[json->depth++] = end;
}

void json_object(struct json *json, const char *key)
{
    open_level(json, key, "{", '}');
}

void json_array(struct json *json, const char *key)
{
    open_level(json, key, "[", ']');
}

void json_close(struct json *json)
{
    assert(json->depth > 0);
    append_bytes(json, &json->ends[--json->depth], 1);
    json->comma = true;
}

void json_string(struct json *json, const char *key, const char *value)
{
    if (value == NULL) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    append_string(json, value);
}

static void put_word(struct json *json, const char *key, const char *word)
{
    begin_value(json, key);
    append_text(json, word);
}

void json_number(struct json *json, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    put_word(json, key, text);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_word(json, key, value ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
    put_word(json, key, "null");
}

static const struct json_value none;

static const char *skip_value(const char *p, const char *end, unsigned depth);

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Reads the four hexadecimal digits of \u; -1: there are fewer. */
static int hex4(const char *p, const char *end)
{
    char digits[5] = "";

    memcpy(digits, p, end - p < 4 ? (size_t)(end - p) : 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
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

static bool value_begins_with(struct json_value value, char first)
{
    return value.text != NULL && value.text[0] == first;
}

/* Returns the value at p, which is known to be well-formed. */
static struct json_value value_at(const char *p, const char *end)
{
    const char *behind = skip_value(p, end, 0);

    return behind == NULL ? none : (struct json_value) { p, (size_t)(behind - p) };
}

/* Returns the first item in an object or array, or the item behind `last`; NULL: no more. */
static const char *next_item(struct json_value level, const char *last)
{
    const char *end = level.text + level.n;
    const char *p = skip_blanks(last == NULL ? level.text + 1 : last, end);

    if (last != NULL && p < end && *p == ',')
        p = skip_blanks(p + 1, end);
    return p < end && *p != '}' && *p != ']' ? p : NULL;
}

struct json_value json_member(struct json_value object, const char *name)
{
    struct json_value key, value;
    const char *p, *end;
    char text[64];

    if (!value_begins_with(object, '{'))
        return none;
    end = object.text + object.n;
    for (p = next_item(object, NULL); p != NULL; p = next_item(object, value.text + value.n)) {
        key = value_at(p, end);
        p = skip_name(p, end);
        value = p == NULL ? none : value_at(p, end);
        if (value.text == NULL || (json_text(key, text, sizeof(text)) && strcmp(text, name) == 0))
            return value;
    }
    return none;
}

struct json_value json_next_member(
    struct json_value object, struct json_value last, char *name, size_t size)
{
    const char *p, *end;

    if (!value_begins_with(object, '{'))
        return none;
    end = object.text + object.n;
    p = next_item(object, last.text == NULL ? NULL : last.text + last.n);
    if (p == NULL)
        return none;
    json_text(value_at(p, end), name, size);
    p = skip_name(p, end);
    return p != NULL ? value_at(p, end) : none;
}

struct json_value json_next(struct json_value array, struct json_value last)
{
    const char *p = NULL;

    if (value_begins_with(array, '['))
        p = next_item(array, last.text == NULL ? NULL : last.text + last.n);
    return p != NULL ? value_at(p, array.text + array.n) : none;
}

/* Decodes a \u escape behind its "u", or a surrogate pair, and moves *p behind it. */
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
        return utf8_encode(take_code(p, end), out);
    out[0] = name != NULL ? meanings[name - names] : c;
    return 1;
}

bool json_text(struct json_value value, char *text, size_t size)
{
    const char *p, *end;
    size_t n = 0;

    text[0] = '\0';
    if (!value_begins_with(value, '"'))
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

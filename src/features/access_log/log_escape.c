/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes values of variables. A value without a byte to escape, as most are, is copied at once. */
#include "features/access_log/log_escape.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Ways to escape a byte, a bit each. */
#define OF(way) (1u << (way))
#define EACH (OF(LOG_ESCAPE_DEFAULT) | OF(LOG_ESCAPE_JSON) | OF(LOG_ESCAPE_PATH))
static const uint8_t escaped[256] = {
    [0 ... 31] = EACH,
    ['"'] = OF(LOG_ESCAPE_DEFAULT) | OF(LOG_ESCAPE_JSON),
    ['/'] = OF(LOG_ESCAPE_PATH),
    ['\\'] = OF(LOG_ESCAPE_DEFAULT) | OF(LOG_ESCAPE_JSON),
    [127] = OF(LOG_ESCAPE_DEFAULT) | OF(LOG_ESCAPE_PATH),
    [128 ... 255] = OF(LOG_ESCAPE_DEFAULT),
};

static size_t write_hex(char *p, const char *prefix, unsigned char c)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = strlen(prefix);

    memcpy(p, prefix, n);
    p[n] = hex[c >> 4];
    p[n + 1] = hex[c & 15];
    return n + 2;
}

/* JSON's short form of a byte; 0: none. */
static char json_letter(unsigned char c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    default:
        return c == '"' || c == '\\' ? (char)c : '\0';
    }
}

/* Writes the escaped form of one byte, and returns the number of bytes written. */
static size_t escape_byte(enum log_escape escape, unsigned char c, char out[LOG_ESCAPED_MAX])
{
    if (escape == LOG_ESCAPE_DEFAULT)
        return write_hex(out, "\\x", c);
    if (escape == LOG_ESCAPE_PATH) {
        out[0] = '_';
        return 1;
    }
    assert(escape == LOG_ESCAPE_JSON);
    if (json_letter(c) == '\0')
        return write_hex(out, "\\u00", c);
    out[0] = '\\';
    out[1] = json_letter(c);
    return 2;
}

static NOINLINE char *write_escaped(
    enum log_escape escape, char *p, char *end, const char *s, size_t n)
{
    for (const char *stop = s + n; s < stop; s++) {
        char out[LOG_ESCAPED_MAX] = { *s };
        size_t size = 1;

        if (escaped[(unsigned char)*s] & OF(escape))
            size = escape_byte(escape, (unsigned char)*s, out);
        if ((size_t)(end - p) < size)
            return NULL;
        memcpy(p, out, size);
        p += size;
    }
    return p;
}

char *log_escape_write(enum log_escape escape, char *p, char *end, const char *s, size_t n)
{
    size_t plain = 0;

    assert(p <= end);
    if (escape == LOG_ESCAPE_NONE)
        plain = n;
    while (plain < n && !(escaped[(unsigned char)s[plain]] & OF(escape)))
        plain++;
    if ((size_t)(end - p) < plain)
        return NULL;
    memcpy(p, s, plain);
    return plain == n ? p + n : write_escaped(escape, p + plain, end, s + plain, n - plain);
}

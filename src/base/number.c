/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses numbers, sizes and times. An overflow becomes INT64_MAX, outside of all limits. */
#include "base/number.h"

#include "base/compiler.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static enum number_status in_range(int64_t value, int64_t least, int64_t greatest, int64_t *out)
{
    assert(least <= greatest);
    /* INT64_MAX stands for every number that is too large */
    if (value < least || value > greatest || value == INT64_MAX)
        return NUMBER_RANGE;
    *out = value;
    return NUMBER_OK;
}

/* Reads digits and moves *s behind them; a number that is too large becomes INT64_MAX. */
static bool parse_digits(const char **s, int64_t *value)
{
    const char *p = *s;

    if (!isdigit((unsigned char)*p))
        return false;
    for (*value = 0; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *p - '0', value))
            *value = INT64_MAX;
    *s = p;
    return true;
}

enum number_status number_parse(const char *s, int64_t least, int64_t greatest, int64_t *out)
{
    bool negative = *s == '-';
    int64_t value;

    if (negative)
        s++;
    if (!parse_digits(&s, &value) || *s != '\0')
        return NUMBER_MALFORMED;
    return in_range(negative ? -value : value, least, greatest, out);
}

enum number_status number_parse_size(const char *s, int64_t least, int64_t greatest, int64_t *out)
{
    static const char units[] = "kKmMgG";
    const char *unit;
    int64_t value;

    if (!parse_digits(&s, &value))
        return NUMBER_MALFORMED;
    if (*s != '\0') {
        unit = strchr(units, *s);
        if (unit == NULL || s[1] != '\0')
            return NUMBER_MALFORMED;
        if (__builtin_mul_overflow(value, INT64_C(1) << 10 * ((unit - units) / 2 + 1), &value))
            value = INT64_MAX;
    }
    return in_range(value, least, greatest, out);
}

enum number_status number_parse_msec(const char *s, int64_t least, int64_t greatest, int64_t *out)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        { "y", 365LL * 86400000 },
        { "M", 30LL * 86400000 },
        { "w", 7LL * 86400000 },
        { "d", 86400000 },
        { "h", 3600000 },
        { "m", 60000 },
        { "s", 1000 },
        { "ms", 1 },
    };
    size_t next = 0; /* largest unit that may still follow */
    int64_t sum = 0, value;

    do {
        size_t length, unit;

        if (!parse_digits(&s, &value))
            return NUMBER_MALFORMED;
        length = strcspn(s, " 0123456789");
        if (length == 0) {
            if (*s == ' ') /* "1 h": the unit belongs to its number */
                return NUMBER_MALFORMED;
            unit = 6;
        } else {
            for (unit = 0; unit < countof(units); unit++)
                if (strlen(units[unit].name) == length && strncmp(units[unit].name, s, length) == 0)
                    break;
        }
        if (unit == countof(units) || unit < next)
            return NUMBER_MALFORMED;
        next = unit + 1;
        if (__builtin_mul_overflow(value, units[unit].ms, &value) ||
            __builtin_add_overflow(sum, value, &sum))
            sum = INT64_MAX;
        s += length;
        while (*s == ' ')
            s++;
    } while (*s != '\0');
    return in_range(sum, least, greatest, out);
}

enum number_status number_parse_usec(const char *s, int64_t least, int64_t greatest, int64_t *out)
{
    int64_t value;

    if (!parse_digits(&s, &value))
        return NUMBER_MALFORMED;
    if (strcmp(s, "ms") == 0 && __builtin_mul_overflow(value, 1000, &value))
        value = INT64_MAX;
    else if (strcmp(s, "ms") != 0 && strcmp(s, "us") != 0 && (*s != '\0' || value != 0))
        return NUMBER_MALFORMED;
    return in_range(value, least, greatest, out);
}

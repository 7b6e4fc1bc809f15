/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds variables without quotes in formats that are JSON. The text of a format decides alone, when
 * the configuration is read: a variable is a value behind ":", "," or "[", and before ",", "}" or
 * "]". A format that is not JSON, and two variables side by side, stay as they were written. */
#include "features/access_log/json_format.h"

#include "base/compiler.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* The fields have the names of their variables; the time is called as in the error log. */
const char json_format_text[] =
    "{\"time\":\"$time_iso8601\",\"pid\":$pid,\"connection\":$connection,"
    "\"remote_addr\":\"$remote_addr\",\"remote_port\":$remote_port,"
    "\"server_addr\":\"$server_addr\",\"server_port\":$server_port,"
    "\"protocol\":\"$protocol\",\"status\":$status,\"session_end\":\"$session_end\","
    "\"session_time\":$session_time,"
    "\"bytes_received\":$bytes_received,\"bytes_sent\":$bytes_sent,"
    "\"upstream_addr\":\"$upstream_addr\",\"upstream_name\":\"$upstream_name\","
    "\"upstream_bytes_received\":\"$upstream_bytes_received\","
    "\"upstream_bytes_sent\":\"$upstream_bytes_sent\","
    "\"upstream_connect_time\":\"$upstream_connect_time\","
    "\"upstream_session_time\":\"$upstream_session_time\"}";

/* What the reader of a format has seen outside of strings. */
#define SEEN_VARIABLE 'v'

struct place {
    bool in_string, escaped;
    char last; /* character that is no space, or SEEN_VARIABLE; '\0': none yet */
};

static bool is_text(const struct template_part *part)
{
    return part->text.state != VALUE_UNKNOWN;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void read_character(struct place *place, char c)
{
    if (!place->in_string) {
        place->in_string = c == '"';
        if (!is_white(c))
            place->last = c;
    } else if (place->escaped) {
        place->escaped = false;
    } else {
        place->escaped = c == '\\';
        place->in_string = c != '"';
    }
}

/* Returns the next character that is no space, or SEEN_VARIABLE; '\0': the format ends. */
static char next_character(const struct template_part *part, const struct template_part *stop)
{
    for (; part < stop; part++) {
        if (!is_text(part))
            return SEEN_VARIABLE;
        for (size_t i = 0; i < part->text.n; i++)
            if (!is_white(part->text.p[i]))
                return part->text.p[i];
    }
    return '\0';
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

void json_format_find_values(const struct template_part *parts, unsigned part_n, bool *values)
{
    const struct template_part *stop = parts + part_n;
    bool is_json = is_one_of(next_character(parts, stop), "{[");
    struct place place = { .last = '\0' };

    for (const struct template_part *part = parts; part < stop; part++) {
        bool *is_value = &values[part - parts];

        *is_value = false;
        if (is_text(part)) {
            for (size_t i = 0; i < part->text.n; i++)
                read_character(&place, part->text.p[i]);
        } else if (place.in_string) {
            place.escaped = false;
        } else {
            *is_value = is_json && is_one_of(place.last, ":,[") &&
                        is_one_of(next_character(part + 1, stop), ",}]");
            place.last = SEEN_VARIABLE;
        }
    }
}

/* Returns the end of the digits, at least one; NULL without. */
static const char *digits_end(const char *s, const char *end)
{
    const char *p = s;

    while (p < end && isdigit((unsigned char)*p))
        p++;
    return p == s ? NULL : p;
}

static bool is_number(const char *s, size_t n)
{
    const char *end = s + n, *digits = s + (n > 0 && *s == '-');
    const char *p = digits_end(digits, end);

    if (p == NULL || (*digits == '0' && p > digits + 1))
        return false;
    if (p < end && *p == '.')
        p = digits_end(p + 1, end);
    if (p != NULL && p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p = digits_end(p + (p < end && (*p == '+' || *p == '-')), end);
    }
    return p == end;
}

bool json_format_is_value(const char *s, size_t n)
{
    static const char *const names[] = { "true", "false", "null" };

    for (unsigned i = 0; i < countof(names); i++)
        if (n == strlen(names[i]) && memcmp(s, names[i], n) == 0)
            return true;
    return is_number(s, n);
}

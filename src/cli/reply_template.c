/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats objects of JSON by templates, which are asserted. The daemon may be of a different
 * version: a missing member of a reply is printed as "-" and is never an error. */
#include "cli/reply_template.h"

#include "base/compiler.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void reply_format_age(int64_t ms, char text[REPLY_TEXT_MAX])
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = { { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } };
    int64_t s = ms / 1000;
    size_t i = 0;

    while (i < countof(units) - 1 && s < units[i].seconds)
        i++;
    if (i == countof(units) - 1)
        snprintf(text, REPLY_TEXT_MAX, "%" PRId64 "s", s);
    else
        snprintf(text, REPLY_TEXT_MAX, "%" PRId64 "%s %" PRId64 "%s", s / units[i].seconds,
            units[i].name, s % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
}

/* Formats microseconds, in microseconds to seconds; "-" for none. */
static void format_below(int64_t us, char text[REPLY_TEXT_MAX])
{
    if (us <= 0)
        strcpy(text, "-");
    else if (us < 1000)
        snprintf(text, REPLY_TEXT_MAX, "%" PRId64 "us", us);
    else if (us < 1000 * 1000)
        snprintf(text, REPLY_TEXT_MAX, "%.3gms", (double)us / 1000);
    else
        snprintf(text, REPLY_TEXT_MAX, "%.3gs", (double)us / 1000000);
}

/* Formats seconds since the epoch; "-" for a time that no calendar has. */
static void format_date(int64_t seconds, char text[REPLY_TEXT_MAX])
{
    time_t time = (time_t)seconds;
    struct tm tm;

    if (gmtime_r(&time, &tm) == NULL ||
        strftime(text, REPLY_TEXT_MAX, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        strcpy(text, "-");
}

static void format_member(struct json_value member, const char *kind, char text[REPLY_TEXT_MAX])
{
    int64_t n = json_integer(member, INT64_MIN);

    if (json_text(member, text, REPLY_TEXT_MAX))
        return;
    if (n == INT64_MIN)
        strcpy(text, "-");
    else if (strcmp(kind, "age") == 0)
        reply_format_age(n, text);
    else if (strcmp(kind, "date") == 0)
        format_date(n, text);
    else if (strcmp(kind, "below") == 0)
        format_below(n, text);
    else if (strcmp(kind, "size") == 0)
        snprintf(text, REPLY_TEXT_MAX, "%.1fM", (double)n / (1 << 20));
    else if (strcmp(kind, "within") == 0)
        format_below(n * 1000, text);
    else
        snprintf(text, REPLY_TEXT_MAX, "%" PRId64, n);
}

void reply_write(FILE *out, struct json_value object, const char *template)
{
    while (*template != '\0') {
        char name[REPLY_NAME_MAX + 1], kind[8] = "", text[REPLY_TEXT_MAX];
        int n = 0;

        if (*template != '{') {
            putc(*template ++, out);
            continue;
        }
        sscanf(template, "{%63[a-z0-9_]%n|%7[a-z]%n", name, &n, kind, &n);
        assert(n > 0 && (template[n] == ':' || template[n] == '}'));
        template += n;
        format_member(json_member(object, name), kind, text);
        fprintf(out, "%*s", *template == ':' ? (int)strtol(template + 1, NULL, 10) : 0, text);
        template = strchr(template, '}') + 1;
    }
}

void reply_write_each(FILE *out, struct json_value array, const char *template)
{
    struct json_value object = { NULL, 0 };

    while ((object = json_next(array, object)).text != NULL)
        reply_write(out, object, template);
}

void reply_write_counts(
    FILE *out, struct json_value object, const char *const names[], size_t n, const char *head)
{
    const char *before = head;

    for (size_t i = 0; i < n; i++) {
        int64_t count = json_integer(json_member(object, names[i]), 0);

        if (count <= 0)
            continue;
        fprintf(out, "%s%" PRId64 " %s", before, count, names[i]);
        before = ", ";
    }
    if (before != head)
        putc('\n', out);
}

bool reply_has(struct json_value object, const char *name)
{
    return json_member(object, name).text != NULL;
}

int reply_column_width(struct json_value array, const char *member, const char *heading)
{
    int width = (int)strlen(heading);
    struct json_value object = { NULL, 0 };
    char text[REPLY_TEXT_MAX];

    while ((object = json_next(array, object)).text != NULL)
        if (json_text(json_member(object, member), text, sizeof(text)) && (int)strlen(text) > width)
            width = (int)strlen(text);
    return width;
}

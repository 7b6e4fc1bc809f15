/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats members of a reply. Templates are the program's own and asserted; replies are input. */
#include "cli/reply_text.h"

#include "base/compiler.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024
#define NAME_MAX_BYTES 63

/* Formats a time in its two largest units: "2d 3h". */
static void format_age(int64_t ms, char text[TEXT_MAX])
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
        snprintf(text, TEXT_MAX, "%" PRId64 "s", s);
    else
        snprintf(text, TEXT_MAX, "%" PRId64 "%s %" PRId64 "%s", s / units[i].seconds, units[i].name,
            s % units[i].seconds / units[i + 1].seconds, units[i + 1].name);
}

/* Formats microseconds, in microseconds to seconds; "-" for none. */
static void format_below(int64_t us, char text[TEXT_MAX])
{
    if (us <= 0)
        strcpy(text, "-");
    else if (us < 1024)
        snprintf(text, TEXT_MAX, "%" PRId64 "us", us);
    else if (us < 1024 * 1024)
        snprintf(text, TEXT_MAX, "%.3gms", (double)us / 1000);
    else
        snprintf(text, TEXT_MAX, "%.3gs", (double)us / 1000000);
}

static void format_member(struct json_value member, const char *kind, char text[TEXT_MAX])
{
    int64_t n = json_integer(member, INT64_MIN);

    if (json_text(member, text, TEXT_MAX))
        return;
    if (n == INT64_MIN)
        strcpy(text, "-");
    else if (strcmp(kind, "age") == 0)
        format_age(n, text);
    else if (strcmp(kind, "below") == 0)
        format_below(n, text);
    else
        snprintf(text, TEXT_MAX, "%" PRId64, n);
}

void reply_text(FILE *out, struct json_value object, const char *template)
{
    while (*template != '\0') {
        char name[NAME_MAX_BYTES + 1], kind[8] = "", text[TEXT_MAX];
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

void reply_text_each(FILE *out, struct json_value array, const char *template)
{
    struct json_value object = { NULL, 0 };

    while ((object = json_next(array, object)).text != NULL)
        reply_text(out, object, template);
}

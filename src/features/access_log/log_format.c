/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `log_format`, and makes the lines of access logs, and the paths with variables. Values are
 * worked out as the line needs them, once a session; a value without a byte to escape, as most are,
 * is copied at once, without memory of the session. */
#include "features/access_log/log_format.h"

#include "base/check.h"
#include "base/compiler.h"
#include "features/access_log/access_log.h"
#include "features/access_log/json_format.h"
#include "features/features.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

/* ---- Escapes ---- */

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

/* ---- Lines ---- */

static char *write_text(char *p, char *end, const char *text, size_t n)
{
    if ((size_t)(end - p) < n)
        return NULL;
    memcpy(p, text, n);
    return p + n;
}

static char *write_quoted(char *p, char *end, const char *s, size_t n)
{
    p = write_text(p, end, "\"", 1);
    if (p != NULL)
        p = log_escape_write(LOG_ESCAPE_JSON, p, end, s, n);
    return p == NULL ? NULL : write_text(p, end, "\"", 1);
}

/* Writes a variable in the place of a JSON value: null for an empty text, and a string for a text
 * that is no JSON. */
static char *write_json_value(
    const struct template_part *part, struct fb_conn *conn, char *p, char *end)
{
    const struct variable *variable = part->variable;
    char text[VARIABLE_TEXT_MAX];
    struct value value;

    if (variable != NULL && variable->text != NULL)
        value = value_found(text, (size_t)(variable->text(conn, text) - text));
    else
        value = template_part_value(conn, part);
    if (value.state != VALUE_FOUND || value.n == 0)
        return write_text(p, end, "null", 4);
    if (json_format_is_value(value.p, value.n))
        return write_text(p, end, value.p, value.n);
    return write_quoted(p, end, value.p, value.n);
}

char *log_format_write(const struct line_format *format, struct fb_conn *conn, char *p, char *end)
{
    const struct template_part *part = format->parts, *stop = part + format->part_n;

    assert(p <= end);
    for (; part < stop && p != NULL; part++) {
        const struct variable *variable = part->variable;
        struct value value;

        if (format->values != NULL && format->values[part - format->parts]) {
            p = write_json_value(part, conn, p, end);
            continue;
        }
        if (variable != NULL && variable->text != NULL && format->escape != LOG_ESCAPE_PATH &&
            (size_t)(end - p) >= VARIABLE_TEXT_MAX) {
            p = variable->text(conn, p);
            continue;
        }
        value = template_part_value(conn, part);
        if (part->text.state != VALUE_UNKNOWN)
            p = write_text(p, end, value.p, value.n);
        else if (value.state == VALUE_FOUND)
            p = log_escape_write(format->escape, p, end, value.p, value.n);
        else if (format->escape == LOG_ESCAPE_DEFAULT) /* nothing else shows a missing value */
            p = write_text(p, end, "-", 1);
    }
    return p;
}

/* ---- Paths ---- */

/* Copies a name of n bytes; returns how many bytes it has become. */
static size_t copy_name(char *out, const char *name, size_t n)
{
    if (n <= 2 && strspn(name, ".") >= n) { /* "", "." or ".." */
        n += n == 0;
        memset(out, '_', n);
        return n;
    }
    if (n > NAME_MAX)
        n = NAME_MAX;
    memcpy(out, name, n);
    return n;
}

int access_path_clean(const char *path, size_t n, char out[PATH_MAX])
{
    char *p = out + n;

    assert(n < PATH_MAX);
    memcpy(out, path, n);
    for (path += n;; path++) {
        size_t name = strcspn(path, "/");

        if (p + name + 2 > out + PATH_MAX) { /* with a "_" and a slash, or the terminator */
            errno = ENAMETOOLONG;
            return -1;
        }
        p += copy_name(p, path, name);
        path += name;
        *p = *path;
        if (*path == '\0')
            return 0;
        p++;
    }
}

int access_path_make(const struct access_path *path, struct fb_conn *conn, char out[PATH_MAX])
{
    char raw[PATH_MAX], *end;

    assert(path->format.escape == LOG_ESCAPE_PATH);
    end = log_format_write(&path->format, conn, raw, raw + PATH_MAX - 1);
    if (end == NULL) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *end = '\0';
    return access_path_clean(raw, strlen(path->directory) + 1, out);
}

/* ---- The directive ---- */

#define ESCAPE "escape="

/* Sets the escaping of the second argument; -1 after a report. */
static int set_escape(
    struct apply *apply, const struct conf_directive *directive, struct line_format *format)
{
    static const char *const escapes[] = {
        [LOG_ESCAPE_DEFAULT] = ESCAPE "default",
        [LOG_ESCAPE_JSON] = ESCAPE "json",
        [LOG_ESCAPE_NONE] = ESCAPE "none",
        NULL,
    };

    for (unsigned i = 0; escapes[i] != NULL; i++)
        if (strcmp(directive->args[1].text, escapes[i]) == 0) {
            format->escape = (enum log_escape)i;
            return 0;
        }
    return set_bad_name(
        apply, directive, 1, escapes, "a log format escaping: \"default\", \"json\" or \"none\"");
}

/* Appends the parts of a text, the word's or a ready one; -1 after a report. */
static int add_format_text(
    struct apply *apply, const struct conf_word *word, const char *text, struct line_format *format)
{
    const struct template *template = template_of(apply, word, text);
    struct template_part *parts;

    if (template == NULL)
        return -1;
    parts = apply_alloc(apply, (format->part_n + template->part_n + 1) * sizeof(*parts));
    if (parts == NULL)
        return -1;
    if (format->part_n > 0)
        memcpy(parts, format->parts, format->part_n * sizeof(*parts));
    memcpy(parts + format->part_n, template->parts, template->part_n * sizeof(*parts));
    format->parts = parts;
    format->part_n += template->part_n;
    return 0;
}

/* Finds the values of a format with escape=json, whose parts are complete; -1 after a report. */
static int find_values(struct apply *apply, struct line_format *format)
{
    bool *values;

    if (format->escape != LOG_ESCAPE_JSON || format->part_n == 0)
        return 0;
    values = apply_alloc(apply, format->part_n * sizeof(*values));
    if (values == NULL)
        return -1;
    json_format_find_values(format->parts, format->part_n, values);
    format->values = values;
    return 0;
}

static int compare_formats(const struct line_format *a, const struct line_format *b)
{
    return strcmp(a->name, b->name);
}

RB_GENERATE_INTERNAL(
    line_formats, line_format, node, compare_formats, static __attribute__((unused)))

const struct line_format *log_format_find(struct apply *apply, const struct conf_word *word)
{
    struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    struct line_format wanted = { .name = word->text };
    struct line_format *found = RB_FIND(line_formats, &conf->formats, &wanted);
    struct nearest near = { .word = word->text };
    struct line_format *format;

    if (found == NULL && strcmp(word->text, JSON_FORMAT_NAME) == 0)
        found = conf->ready;
    if (found != NULL)
        return found;
    nearest_try(&near, JSON_FORMAT_NAME);
    RB_FOREACH (format, line_formats, &conf->formats)
        nearest_try(&near, format->name);
    report_error(apply->report, word, "unknown log format \"%s\"%s%s%s", word->text,
        near.found != NULL ? ", did you mean \"" : "", near.found != NULL ? near.found : "",
        near.found != NULL ? "\"?" : "");
    return NULL;
}

int log_format_use(struct apply *apply, const struct conf_word *word)
{
    struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    struct line_format *format;

    if (conf->ready != NULL || strcmp(word->text, JSON_FORMAT_NAME) != 0)
        return 0;
    format = apply_alloc(apply, sizeof(*format));
    if (format == NULL)
        return -1;
    *format = (struct line_format) { .name = JSON_FORMAT_NAME, .escape = LOG_ESCAPE_JSON };
    if (add_format_text(apply, word, json_format_text, format) == -1 ||
        find_values(apply, format) == -1)
        return -1;
    conf->ready = format;
    return 0;
}

int log_format_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct access_log_conf *conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    struct line_format *format = apply_alloc(apply, sizeof(*format));
    unsigned first = 1;

    (void)field;
    if (format == NULL)
        return -1;
    format->name = directive->args[0].text;
    format->parts = apply_alloc(apply, sizeof(*format->parts));
    if (RB_INSERT(line_formats, &conf->formats, format) != NULL)
        return report_error(apply->report, &directive->args[0],
            "duplicate \"log_format\" name \"%s\"", format->name);
    if (strncmp(directive->args[1].text, ESCAPE, strlen(ESCAPE)) == 0) {
        if (set_escape(apply, directive, format) == -1)
            return -1;
        first = 2;
    }
    for (unsigned i = first; i < directive->arg_n && format->parts != NULL; i++)
        if (add_format_text(apply, &directive->args[i], directive->args[i].text, format) == -1)
            return -1;
    return find_values(apply, format);
}

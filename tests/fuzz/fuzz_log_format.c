/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as a string of log_format, up to a NUL, and then as the value of a variable: a string
 * is read whole or refused; a value comes back from each way of escaping, is harmless in it, and
 * never leads out of a directory. */
#include "fuzz/input.h"

#include "features/access_log/log_format.h"
#include "settings/apply.h"
#include "settings/template.h"

#include <stdlib.h>
#include <string.h>

/* Compares the parts with what was read. */
static void check_parts(const struct template *template, const char *text)
{
    for (unsigned i = 0; i < template->part_n; i++) {
        const struct template_part *part = &template->parts[i];

        if (part->text.state == VALUE_UNKNOWN) {
            size_t brace = text[1] == '{', n;

            require(*text == '$', "a variable begins with \"$\"");
            n = part->variable != NULL ? strlen(part->variable->name) : 1;
            require(part->variable != NULL ? n > 0 : part->capture >= 1 && part->capture <= 9,
                "a variable has a name, or a capture a digit");
            text += 1 + n + 2 * brace;
            continue;
        }
        require(part->text.n > 0 && memchr(part->text.p, '$', part->text.n) == NULL,
            "a text is not empty, and has no variable");
        require(strncmp(text, part->text.p, part->text.n) == 0, "a text is what was read");
        text += part->text.n;
    }
    require(*text == '\0', "all was read");
}

static void check_format(const char *text)
{
    struct arena *arena = arena_create();
    static const struct variable_row *const tables[] = { variables_builtin, NULL };
    struct variables variables = { .tables = tables };
    struct cycle cycle = { .arena = arena, .stream.variables = &variables };
    struct conf_report report;
    struct conf_file file = { .name = "fuzz", .text = "" };
    struct conf_word word = { .text = text, .file = &file, .line = 1, .column = 1 };
    struct apply apply = { .kind = APPLY_KIND, .cycle = &cycle, .report = &report };
    const struct template *template;

    require(arena != NULL, "there is memory");
    report_init(&report, arena);
    RB_INIT(&variables.all);
    template = template_of(&apply, &word, text);
    require((template == NULL) == (report.error_n == 1), "what is not read has one mistake");
    if (template != NULL)
        check_parts(template, text);
    arena_destroy(&arena);
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte of an escape sequence; *n is the sequence's length. -1: not an escape. */
static int unescape(enum log_escape escape, const char *p, size_t left, size_t *n)
{
    static const char letters[] = "n\nr\rt\tb\bf\f\"\"\\\\";
    const char *letter = left > 1 && escape == LOG_ESCAPE_JSON ? strchr(letters, p[1]) : NULL;
    size_t digits = escape == LOG_ESCAPE_DEFAULT ? 2 : 4;

    if (*p != '\\' || escape == LOG_ESCAPE_NONE) {
        *n = 1;
        return (unsigned char)*p;
    }
    if (letter != NULL && (letter - letters) % 2 == 0) {
        *n = 2;
        return (unsigned char)letter[1];
    }
    *n = digits + 2;
    if (left < *n || p[1] != (digits == 2 ? 'x' : 'u') || hex_of(p[*n - 1]) < 0)
        return -1;
    return hex_of(p[*n - 2]) * 16 + hex_of(p[*n - 1]);
}

static void check_escaped(
    enum log_escape escape, const char *text, size_t text_n, const uint8_t *value, size_t n)
{
    size_t used;

    for (size_t i = 0; i < text_n; i++) {
        unsigned char c = (unsigned char)text[i];

        require(escape == LOG_ESCAPE_NONE || (c >= 0x20 && c != '\0'), "no control character");
        require(escape != LOG_ESCAPE_DEFAULT || (c < 0x7f && c != '"'), "printable, no quote");
    }
    for (; n > 0; n--, value++) {
        require(text_n > 0 && unescape(escape, text, text_n, &used) == *value, "a value returns");
        text += used;
        text_n -= used;
    }
    require(text_n == 0, "a value has no more bytes");
}

/* Writes to blocks of the exact size, and of one byte less. */
static void check_value(enum log_escape escape, const uint8_t *value, size_t n)
{
    size_t most = n * LOG_ESCAPED_MAX;
    char *wide = malloc(most + 1), *tight, *end;

    require(wide != NULL, "there is memory");
    end = log_escape_write(escape, wide, wide + most, (const char *)value, n);
    require(end != NULL, "there is room");
    most = (size_t)(end - wide);
    tight = malloc(most + 1);
    require(tight != NULL, "there is memory");
    require(log_escape_write(escape, tight, tight + most, (const char *)value, n) == tight + most,
        "there is just enough room");
    require(memcmp(tight, wide, most) == 0, "both are the same");
    if (most > 0)
        require(log_escape_write(escape, tight, tight + most - 1, (const char *)value, n) == NULL,
            "there is too little room");
    if (escape != LOG_ESCAPE_PATH)
        check_escaped(escape, wide, most, value, n);
    free(tight);
    free(wide);
}

/* The value is a valid name; so are its bytes without escaping. */
static void check_path(const uint8_t *value, size_t n)
{
    char path[PATH_MAX], out[PATH_MAX], *end;

    memcpy(path, "/l/", 3);
    end = log_escape_write(LOG_ESCAPE_PATH, path + 3, path + PATH_MAX - 1, (const char *)value, n);
    if (end == NULL)
        return;
    *end = '\0';
    require(strchr(path + 3, '/') == NULL, "a value has no directory");
    for (size_t i = 0; i < n && (const char *)path + 3 + i < end; i++)
        if (value[i] == '/')
            path[3 + i] = '/';
    if (access_path_clean(path, 3, out) == -1)
        return;
    require(strncmp(out, "/l/", 3) == 0, "the directory stays");
    for (const char *name = out + 3;; name++) {
        size_t length = strcspn(name, "/");

        require(length > 0 && length <= NAME_MAX, "a name is none that cannot be");
        require(length > 2 || strspn(name, ".") < length, "a name is no directory's");
        name += length;
        if (*name == '\0')
            break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size == 0 ? NULL : memchr(data, '\0', size);
    size_t n = end == NULL ? size : (size_t)(end - data);
    char *text = strndup((const char *)data, n);

    require(text != NULL, "there is memory");
    check_format(text);
    free(text);
    if (end == NULL)
        return 0;
    size -= n + 1;
    for (int escape = LOG_ESCAPE_DEFAULT; escape <= LOG_ESCAPE_PATH; escape++)
        check_value((enum log_escape)escape, end + 1, size);
    check_path(end + 1, size);
    return 0;
}

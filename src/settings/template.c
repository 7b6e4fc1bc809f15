/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads texts with variables. A variable may be used before its definition: undefined variables are
 * known only at the end of stream {}. */
#include "settings/template.h"

#include "base/check.h"
#include "settings/apply.h"
#include "settings/nginx_only.h"
#include "settings/set_value.h"

#include <string.h>
#include <unistd.h>

#define HOSTNAME_MAX 256

/* A text being read: the parts so far. */
struct reading {
    struct apply *apply;
    const struct conf_word *word;
    size_t word_n;   /* its bytes */
    const char *end; /* the text's, and the word's */
    struct template_part parts[TEMPLATE_PARTS_MAX];
    unsigned part_n;
};

static size_t name_length(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

/* Whether the byte is a value's of the environment, and not syntax. */
static bool is_plain(const struct reading *reading, const char *at)
{
    size_t left = (size_t)(reading->end - at);

    assert(left > 0);
    return reading->word->plain != NULL && left <= reading->word_n &&
           reading->word->plain[reading->word_n - left] != 0;
}

static struct variable *find(
    struct apply *apply, const struct conf_word *word, const char *name, size_t n)
{
    struct variables *variables = apply->cycle->stream.variables;
    struct variable *variable = variables_add(variables, apply->cycle->arena, name, n);

    if (variable == NULL)
        report_error(apply->report, word, "out of memory");
    return variable;
}

struct variable *template_use(
    struct apply *apply, const struct conf_word *word, const char *name, size_t n)
{
    struct variable *variable = find(apply, word, name, n);

    if (variable != NULL)
        variables_use(apply->cycle->stream.variables, variable, word);
    return variable;
}

static int add_part(struct reading *reading, struct template_part part)
{
    if (reading->part_n == TEMPLATE_PARTS_MAX)
        return report_error(reading->apply->report, reading->word,
            "\"%s\" has more than %d variables and texts between variables", reading->word->text,
            TEMPLATE_PARTS_MAX);
    reading->parts[reading->part_n++] = part;
    return 0;
}

static int add_text(struct reading *reading, const char *text, size_t n)
{
    char *copy = n > 0 ? arena_strndup(reading->apply->cycle->arena, text, n) : NULL;

    if (n == 0)
        return 0;
    if (copy == NULL)
        return report_error(reading->apply->report, NULL, "out of memory");
    return add_part(reading, (struct template_part) { .text = value_own(copy, n) });
}

/* Returns how many bytes of a name there are, none of them a value's. */
static size_t used_length(const struct reading *reading, const char *name)
{
    size_t most = name_length(name), n = 0;

    while (n < most && !is_plain(reading, name + n))
        n++;
    return n;
}

/* Returns the number of bytes before a "$" with a variable. */
static size_t text_length(const struct reading *reading, const char *text)
{
    size_t n = strcspn(text, "$");

    while (text[n] != '\0' && is_plain(reading, text + n))
        n += 1 + strcspn(text + n + 1, "$");
    return n;
}

/* Reads the variable after a "$", and goes behind the variable; -1 after a report. */
static int add_variable(struct reading *reading, const char **text)
{
    struct conf_report *report = reading->apply->report;
    bool closed = **text == '{';
    const char *name = *text + closed;
    size_t n = used_length(reading, name);
    struct variable *variable;

    if (n > 0 && !closed && **text >= '1' && **text <= '9') /* a single digit, as in nginx */
        return add_part(
            reading, (struct template_part) { .capture = (unsigned)(*(*text)++ - '0') });
    if (n == 0)
        return report_error(report, reading->word,
            "invalid variable name in \"%s\": expected letters, digits or \"_\" after \"$\"",
            reading->word->text);
    if (closed && name[n] != '}')
        return report_error(report, reading->word,
            "the closing bracket in \"%.*s\" variable is missing in \"%s\"", (int)n, name,
            reading->word->text);
    *text = name + n + closed;
    variable = template_use(reading->apply, reading->word, name, n);
    if (variable == NULL)
        return -1;
    return add_part(reading, (struct template_part) { .variable = variable });
}

static const struct template *keep(struct reading *reading)
{
    struct template *template = apply_alloc(reading->apply, sizeof(*template));
    size_t size = reading->part_n * sizeof(*reading->parts);
    struct template_part *parts = apply_alloc(reading->apply, size + 1);

    if (template == NULL || parts == NULL)
        return NULL;
    memcpy(parts, reading->parts, size);
    *template = (struct template) { .parts = parts, .part_n = reading->part_n };
    return template;
}

const struct template *template_of(
    struct apply *apply, const struct conf_word *word, const char *text)
{
    struct reading reading = {
        .apply = apply,
        .word = word,
        .word_n = strlen(word->text),
        .end = text + strlen(text),
    };

    while (*text != '\0') {
        size_t n = text_length(&reading, text);

        if (add_text(&reading, text, n) == -1)
            return NULL;
        text += n;
        if (*text != '$')
            break;
        text++;
        if (add_variable(&reading, &text) == -1)
            return NULL;
    }
    return keep(&reading);
}

const struct variable *template_find(
    const struct template *template, const char *prefix, unsigned maps)
{
    for (unsigned i = 0; i < template->part_n; i++) {
        const struct variable *variable = template->parts[i].variable;

        if (variable == NULL)
            continue;
        if (strncmp(variable->name, prefix, strlen(prefix)) == 0)
            return variable;
        if (variable->of != NULL && maps > 0)
            variable = template_find(variable->of, prefix, maps - 1);
        else
            variable = NULL;
        if (variable != NULL)
            return variable;
    }
    return NULL;
}

/* Whether the word is "$" and a name; if not, after a report. */
static bool is_name(struct apply *apply, const struct conf_word *word)
{
    size_t n = word->text[0] == '$' ? name_length(word->text + 1) : 0;

    if (n > 0 && word->text[1 + n] == '\0')
        return true;
    report_error(apply->report, word,
        "invalid variable name \"%s\": expected \"$\" and letters, digits or \"_\"", word->text);
    return false;
}

struct variable *template_variable(struct apply *apply, const struct conf_word *word)
{
    if (!is_name(apply, word))
        return NULL;
    return template_use(apply, word, word->text + 1, strlen(word->text + 1));
}

struct variable *template_define(struct apply *apply, const struct conf_word *word)
{
    struct variable *variable;

    if (!is_name(apply, word))
        return NULL;
    variable = find(apply, word, word->text + 1, strlen(word->text + 1));
    if (variable == NULL)
        return NULL;
    if (variable->get != NULL && !(variable->flags & VARIABLE_CHANGEABLE)) {
        report_error(apply->report, word, "the duplicate \"%s\" variable", variable->name);
        return NULL;
    }
    variable->flags |= VARIABLE_CHANGEABLE;
    return variable;
}

void template_begin(struct apply *apply)
{
    struct variables *variables = apply->cycle->stream.variables;

    variables->hostname = apply_alloc(apply, HOSTNAME_MAX);
    if (variables->hostname != NULL)
        gethostname(variables->hostname, HOSTNAME_MAX - 1);
}

/* Returns a similar name that the operator may have meant, or NULL. */
static const char *find_nearest(struct variables *variables, const char *name)
{
    struct nearest near = { .word = name };
    struct variable *variable = NULL;

    while ((variable = variables_next(variables, variable)) != NULL)
        if (variable->get != NULL)
            nearest_try(&near, variable->name);
    for (size_t i = 0; near.found == NULL && variables->tables[i] != NULL; i++)
        for (const struct variable_row *row = variables->tables[i]; row->name != NULL; row++)
            if (strchr(row->name, '*') == NULL)
                nearest_try(&near, row->name);
    return near.found;
}

static void report_unknown(struct apply *apply, const struct variable *variable)
{
    const char *name = variable->name, *other;

    if (nginx_only_variable(name)) {
        report_error(apply->report, variable->used_at,
            "\"%s\" variable of nginx is not supported%s", name, nginx_lacking(name));
        return;
    }
    other = find_nearest(apply->cycle->stream.variables, name);
    report_error(apply->report, variable->used_at, "unknown \"%s\" variable%s%s%s", name,
        other != NULL ? ", did you mean \"" : "", other != NULL ? other : "",
        other != NULL ? "\"?" : "");
}

void template_finish(struct apply *apply)
{
    struct variable *variable = NULL;

    while ((variable = variables_next(apply->cycle->stream.variables, variable)) != NULL)
        if (variable->get == NULL && variable->index > 0)
            report_unknown(apply, variable);
}

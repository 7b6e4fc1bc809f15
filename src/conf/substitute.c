/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces environment variables in a word, first to count bytes and find mistakes, then to copy. A
 * value is never read as syntax. */
#include "conf/substitute.h"

#include "conf/report.h"

#include <assert.h>
#include <string.h>

#define DEPTH_MAX 16 /* defaults within each other */
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_BYTES CAPITALS "0123456789"
#define SHOWN_MAX 100 /* bytes of a name in a message */

struct substitution {
    struct conf_source *source;
    const struct conf_word *word;
    const char *const *environment;
    char *to, *plain; /* NULL: bytes are only counted */
    size_t n;
    unsigned depth;
};

struct name {
    const char *text;
    size_t n;
};

/* Recognises "${NAME" at p; the text after it may still be wrong. */
static bool is_environment_name(const char *p, struct name *name)
{
    if (p[0] != '$' || p[1] != '{' || p[2] == '\0' || strchr(CAPITALS, p[2]) == NULL)
        return false;
    *name = (struct name) { p + 2, strspn(p + 2, NAME_BYTES) };
    return !(name->text[name->n] >= 'a' && name->text[name->n] <= 'z');
}

static int shown_length(const struct name *name)
{
    return name->n < SHOWN_MAX ? (int)name->n : SHOWN_MAX;
}

static void put_text(struct substitution *s, const char *text, size_t n, bool plain)
{
    if (s->to != NULL) {
        memcpy(s->to + s->n, text, n);
        memset(s->plain + s->n, plain, n);
    }
    s->n += n;
    assert(s->n >= n);
}

static const char *environment_value(const struct substitution *s, const struct name *name)
{
    for (const char *const *e = s->environment; e != NULL && *e != NULL; e++)
        if (strncmp(*e, name->text, name->n) == 0 && (*e)[name->n] == '=')
            return *e + name->n + 1;
    return NULL;
}

static const char *fail_unset(const struct substitution *s, const struct name *name)
{
    report_error(s->source->report, s->word,
        "the environment variable \"%.*s\" is not set: set it, or write a default as in "
        "\"${%.*s:-default}\"",
        shown_length(name), name->text, shown_length(name), name->text);
    return NULL;
}

static const char *fail_form(const struct substitution *s, const struct name *name)
{
    report_error(s->source->report, s->word,
        "the environment variable \"${%.*s\" is not closed: expected \"}\" or \":-default}\" after "
        "its name, and quotes around a default with blanks, \";\" or \"{\"",
        shown_length(name), name->text);
    return NULL;
}

static const char *copy_until(struct substitution *s, const char *p, char end, bool wanted);

/* Reads a default from p, after its "-", and copies a wanted default. */
static const char *put_default(
    struct substitution *s, const struct name *name, const char *p, bool wanted)
{
    if (s->depth == DEPTH_MAX) {
        report_error(s->source->report, s->word,
            "more than %d defaults of environment variables are nested", DEPTH_MAX);
        return NULL;
    }
    s->depth++;
    p = copy_until(s, p, '}', wanted);
    assert(s->depth > 0);
    s->depth--;
    return p == NULL || *p == '}' ? p : fail_form(s, name);
}

/* Returns the text behind the variable, or NULL after a report. */
static const char *put_variable(struct substitution *s, const struct name *name, bool wanted)
{
    const char *value = environment_value(s, name), *p = name->text + name->n;
    bool empty_counts = strncmp(p, ":-", 2) != 0;
    bool set = value != NULL && (empty_counts || *value != '\0');

    if (*p == '}' && !set && wanted)
        return fail_unset(s, name);
    if (set && wanted)
        put_text(s, value, strlen(value), true);
    if (*p == '}')
        return p + 1;
    if (*p != '-' && empty_counts)
        return fail_form(s, name);
    p = put_default(s, name, p + (empty_counts ? 1 : 2), wanted && !set);
    return p != NULL ? p + 1 : NULL;
}

/* Copies a variable made plain by a second "$", and returns the text behind the variable. */
static const char *put_literal(struct substitution *s, const struct name *name, bool wanted)
{
    size_t n = name->n + (name->text[name->n] == '}');

    if (wanted) {
        put_text(s, "${", 2, true);
        put_text(s, name->text, n, true);
    }
    return name->text + n;
}

/* Copies up to the byte `end`, or all of the text; returns the place, or NULL after a report. */
static const char *copy_until(struct substitution *s, const char *p, char end, bool wanted)
{
    struct name name;

    while (p != NULL && *p != '\0' && *p != end) {
        if (*p == '$' && is_environment_name(p + 1, &name)) {
            p = put_literal(s, &name, wanted);
        } else if (is_environment_name(p, &name)) {
            p = put_variable(s, &name, wanted);
        } else {
            if (wanted)
                put_text(s, p, 1, false);
            p++;
        }
    }
    return p;
}

bool substitute_finds(const struct conf_word *word)
{
    struct name name;

    for (const char *p = word->text; (p = strstr(p, "${")) != NULL; p++)
        if (is_environment_name(p, &name))
            return true;
    return false;
}

int substitute_variables(struct conf_source *source, const struct conf_word *word,
    const char *const *environment, struct conf_word *out)
{
    struct substitution s = { .source = source, .word = word, .environment = environment };
    size_t counted;

    if (copy_until(&s, word->text, '\0', true) == NULL)
        return -1;
    if (s.n > CONF_FILE_MAX) { /* a small file with a large variable many times */
        return report_error(source->report, word,
            "with the environment variables the argument is larger than %d MiB",
            CONF_FILE_MAX / (1024 * 1024));
    }
    s.to = arena_alloc(source->arena, s.n + 1);
    s.plain = arena_alloc(source->arena, s.n + 1);
    if (s.to == NULL || s.plain == NULL)
        return report_error(source->report, word, "out of memory");
    counted = s.n;
    s.n = 0;
    copy_until(&s, word->text, '\0', true);
    assert(s.n == counted);
    s.to[s.n] = '\0';
    *out = *word;
    out->text = s.to;
    out->written = word->text;
    out->plain = strchr(s.to, '$') != NULL ? s.plain : NULL;
    return 0;
}

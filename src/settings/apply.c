/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies directives by the rows of the tables: checks names, forms, repetitions, defaults and
 * inheritance, so that a setter gets the right number of arguments. */
#include "settings/apply.h"

#include "base/check.h"
#include "settings/blocks.h"
#include "settings/rows.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A default in the rows: the words, and the bytes. */
#define INITIAL_WORDS_MAX 4
#define INITIAL_MAX 64

const struct conf_directive *apply_find(const struct scope *scope, const struct setting *setting)
{
    const struct scope_entry *seen;

    CHECK_KIND(scope, SCOPE_KIND);
    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting == setting)
            return seen->directive;
    return NULL;
}

bool apply_is_whole(const struct apply *apply, const struct scope *scope)
{
    return !scope->refused && !apply->cut && !apply->cycle->source.partial;
}

static bool check_arguments(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    char expected[64];

    if (directive->arg_n >= setting->least && directive->arg_n <= setting->most)
        return true;
    if (rows_is_unterminated(apply, directive, directive->arg_n))
        return false;
    if (setting->least == setting->most)
        snprintf(expected, sizeof(expected), "%u", setting->least);
    else if (setting->most == UCHAR_MAX)
        snprintf(expected, sizeof(expected), "at least %u", setting->least);
    else
        snprintf(expected, sizeof(expected), "%u to %u", setting->least, setting->most);
    report_error(apply->report,
        directive->arg_n > setting->most ? &directive->args[setting->most] : &directive->name,
        "invalid number of arguments in \"%s\" directive: expected %s, found %u", setting->name,
        expected, directive->arg_n);
    return false;
}

static bool check_form(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    if (setting->block && directive->block == NULL)
        report_error(apply->report, &directive->name, "directive \"%s\" has no opening \"{\"",
            setting->name);
    else if (!setting->block && directive->block != NULL)
        report_error(apply->report, &directive->name,
            "directive \"%s\" is not terminated by \";\", and takes no block", setting->name);
    else
        return check_arguments(apply, setting, directive);
    return false;
}

static bool check_repetition(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    const struct conf_directive *first = apply_find(apply->scope, setting);
    struct scope_entry *seen;

    assert(setting->at & apply->scope->at);
    if (first != NULL && !setting->repeats) {
        report_error(apply->report, &directive->name,
            "\"%s\" directive is duplicate: first set in %s:%u", setting->name,
            first->name.file->name, first->name.line);
        return false;
    }
    /* a block is asked for its first directive of a row; the main context by file, too */
    if (first != NULL && apply->scope->at != CONTEXT_MAIN)
        return true;
    seen = apply_alloc(apply, sizeof(*seen));
    if (seen == NULL)
        return false;
    *seen = (struct scope_entry) { .setting = setting, .directive = directive };
    STAILQ_INSERT_TAIL(&apply->scope->seen, seen, link);
    return true;
}

/* Returns the struct of a block of stream {} for the row. */
static void *block_base(const struct scope *scope, const struct setting *setting)
{
    assert(scope->settings != NULL);
    return setting->feature > 0 ? scope->features[setting->feature - 1] : scope->settings;
}

/* Returns the row's field; NULL for a row of a protocol, whose setter finds the field. */
static void *field_of(struct apply *apply, const struct setting *setting)
{
    void *base = apply->scope->own;

    if (setting->protocol != NULL)
        return NULL;
    if (setting->at & CONTEXT_MAIN)
        base = &apply->cycle->core;
    else if (setting->at & CONTEXT_EVENTS)
        base = &apply->cycle->events;
    else if (!(setting->at & CONTEXT_OWN))
        base = block_base(apply->scope, setting);
    return (char *)base + setting->offset;
}

static void run_setter(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    const struct setting *outer = apply->setting;

    assert(setting->set != NULL);
    apply->setting = setting;
    setting->set(apply, directive, field_of(apply, setting));
    apply->setting = outer;
}

/* A protocol's default of any number of arguments is parsed as if it was written. */
static void set_initial_custom(struct apply *apply, const struct setting *setting)
{
    const char *text = apply_taken(
        apply, arena_printf(apply->cycle->arena, "%s %s;", setting->name, setting->initial));
    const struct conf_block *block =
        text == NULL ? NULL
                     : conf_parse_text(&apply->cycle->source, "its default", text, strlen(text));
    const struct conf_directive *directive =
        block == NULL ? NULL : STAILQ_FIRST(&block->directives);

    if (directive != NULL && check_form(apply, setting, directive))
        run_setter(apply, setting, directive);
}

/* A default of several arguments is cut at blanks. The words are gone when the setter returns. */
static void set_initial(struct apply *apply, const struct setting *setting)
{
    char text[INITIAL_MAX], *rest = text, *word;
    struct conf_word words[INITIAL_WORDS_MAX] = { { .text = setting->initial } };
    struct conf_directive directive = { .name = { .text = setting->name }, .args = words };

    assert(setting->most <= 1 || strlen(setting->initial) < sizeof(text));
    if (setting->most <= 1)
        directive.arg_n = 1;
    else
        for (strcpy(text, setting->initial); (word = strsep(&rest, " ")) != NULL;) {
            assert(directive.arg_n < INITIAL_WORDS_MAX);
            words[directive.arg_n++] = (struct conf_word) { .text = word };
        }
    run_setter(apply, setting, &directive);
}

void apply_initial(struct apply *apply, struct scope *scope, const struct setting *setting)
{
    bool custom = setting->declared != NULL && setting->declared->value == FB_VALUE_CUSTOM;
    struct scope *saved = apply->scope;

    assert(setting->at & scope->at);
    assert(setting->initial == NULL || setting->unset == NULL);
    apply->scope = scope;
    if (setting->initial == NULL && setting->unset_value != 0)
        *(int64_t *)field_of(apply, setting) = setting->unset_value;
    else if (setting->initial != NULL && custom)
        set_initial_custom(apply, setting);
    else if (setting->initial != NULL)
        set_initial(apply, setting);
    apply->scope = saved;
}

static void set_written(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    if (setting->parts)
        apply_initial(apply, apply->scope, setting);
    run_setter(apply, setting, directive);
}

void apply_block(struct apply *apply, const struct conf_block *block)
{
    const struct conf_directive *directive;

    CHECK_KIND(apply, APPLY_KIND);
    CHECK_KIND(apply->scope, SCOPE_KIND);
    STAILQ_FOREACH (directive, &block->directives, link) {
        const struct setting *setting = rows_find(apply, directive->name.text, apply->scope->at);
        const struct conf_directive *substituted;

        if (apply->options->only_pid && (setting == NULL || !setting->finds_master))
            continue;
        if (setting == NULL)
            rows_report_unknown(apply, directive);
        else if (check_form(apply, setting, directive) &&
                 check_repetition(apply, setting, directive) &&
                 (substituted = substitution_apply(apply, directive)) != NULL)
            set_written(apply, setting, substituted);
    }
}

static void init_scope(struct scope *scope, unsigned at, struct scope *outer)
{
    assert((at & CONTEXT_ANY) == at && at != 0 && (at & (at - 1)) == 0);
    assert((outer == NULL) == (at == CONTEXT_MAIN));
    scope->kind = SCOPE_KIND;
    scope->at = at;
    scope->outer = outer;
    STAILQ_INIT(&scope->seen);
    STAILQ_INIT(&scope->servers);
    STAILQ_INIT(&scope->listens);
    STAILQ_INIT(&scope->names);
}

void apply_scope(
    struct apply *apply, struct scope *scope, unsigned at, const struct conf_directive *directive)
{
    unsigned errors = apply->report->error_n;

    CHECK_KIND(apply, APPLY_KIND);
    init_scope(scope, at, apply->scope);
    scope->directive = directive;
    apply->scope = scope;
    if (directive != NULL)
        apply_block(apply, directive->block);
    if (apply->report->error_n > errors + scope->server_errors)
        scope->refused = true;
    assert(apply->scope == scope); /* inner scopes were left */
    apply->scope = scope->outer;
}

/* Whether a row for the same field was written: two directives can be names of one value. */
static bool is_field_set(
    const struct scope *scope, const struct setting *table, const struct setting *setting)
{
    assert(setting->at & scope->at);
    for (const struct setting *row = table; row->name != NULL; row++)
        if (row->set == setting->set && row->offset == setting->offset &&
            row->feature == setting->feature && apply_find(scope, row) != NULL)
            return true;
    return false;
}

void apply_defaults(struct apply *apply, struct scope *scope, const struct setting *table)
{
    struct scope *outer = scope->outer;

    CHECK_KIND(scope, SCOPE_KIND);
    assert(outer == NULL || scope->settings == NULL || outer->settings != NULL);
    for (const struct setting *setting = table; setting->name != NULL; setting++) {
        if (!(setting->at & scope->at) || is_field_set(scope, table, setting))
            continue;
        if (outer != NULL && setting->size > 0 && apply_find(outer, setting) != NULL)
            memcpy((char *)block_base(scope, setting) + setting->offset,
                (char *)block_base(outer, setting) + setting->offset, setting->size);
        else
            apply_initial(apply, scope, setting);
    }
}

static int apply_included(void *arg, struct conf_block *block)
{
    struct apply *apply = arg;

    CHECK_KIND(apply, APPLY_KIND);
    apply_block(apply, block);
    return 0;
}

int apply_include(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *pattern = apply_conf_path(apply, directive->args[0].text);

    CHECK_KIND(apply, APPLY_KIND);
    (void)field;
    if (pattern == NULL)
        return -1;
    return conf_include(&apply->cycle->source, &directive->args[0], pattern, apply_included, apply);
}

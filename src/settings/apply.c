/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies directives by the rows of the tables: unknown names, the form of a directive,
 * repetitions, defaults and inheritance are checked here, so that a setter is called only with the
 * right number of arguments. */
#include "settings/apply.h"

#include "base/check.h"
#include "settings/blocks.h"
#include "settings/protocol_field.h"
#include "settings/rows.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A default in the rows: the words, and the bytes. */
#define INITIAL_WORDS_MAX 4
#define INITIAL_MAX 64

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
            "directive \"%s\" is not terminated by \";\", it takes no block", setting->name);
    else
        return check_arguments(apply, setting, directive);
    return false;
}

static bool check_repetition(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    const struct conf_directive *first = scope_find(apply->scope, setting);
    struct scope_entry *seen;

    assert(setting->at & apply->scope->at);
    if (first != NULL && !setting->repeats) {
        report_error(apply->report, &directive->name,
            "\"%s\" directive is duplicate: it was first set in %s:%u", setting->name,
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

/* Returns the struct for the rows of a context. */
static void *base_of(struct apply *apply, const struct setting *setting)
{
    if (setting->at & CONTEXT_MAIN)
        return &apply->cycle->core;
    if (setting->at & CONTEXT_EVENTS)
        return &apply->cycle->events;
    if (setting->at & CONTEXT_OWN)
        return apply->scope->own;
    return block_base(apply->scope, setting);
}

/* Returns the row's field; NULL after a report. */
static void *field_of(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    if (setting->protocol != NULL)
        return protocol_field(apply, setting, directive);
    return (char *)base_of(apply, setting) + setting->offset;
}

static void run_setter(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    const struct setting *outer = apply->setting;
    void *field = field_of(apply, setting, directive);

    assert(setting->set != NULL);
    apply->setting = setting;
    if (field != NULL)
        setting->set(apply, directive, field);
    apply->setting = outer;
}

/* A protocol's default of any number of arguments is parsed as if it was written. */
static void set_initial_custom(struct apply *apply, const struct setting *setting)
{
    const char *text = arena_printf(apply->cycle->arena, "%s %s;", setting->name, setting->initial);
    const struct conf_block *block =
        text == NULL ? NULL
                     : conf_parse_text(&apply->cycle->source, "its default", text, strlen(text));
    const struct conf_directive *directive =
        block == NULL ? NULL : STAILQ_FIRST(&block->directives);

    if (text == NULL)
        report_error(apply->report, NULL, "out of memory");
    else if (directive != NULL && check_form(apply, setting, directive))
        run_setter(apply, setting, directive);
}

/* A row of ours with several arguments has its default cut at blanks. The words are gone when the
 * setter returns. */
static void set_initial_words(struct apply *apply, const struct setting *setting)
{
    char text[INITIAL_MAX], *rest = text, *word;
    struct conf_word words[INITIAL_WORDS_MAX];
    struct conf_directive directive = { .name = { .text = setting->name }, .args = words };

    assert(strlen(setting->initial) < sizeof(text));
    strcpy(text, setting->initial);
    while ((word = strsep(&rest, " ")) != NULL) {
        assert(directive.arg_n < INITIAL_WORDS_MAX);
        words[directive.arg_n++] = (struct conf_word) { .text = word };
    }
    assert(directive.arg_n >= setting->least && directive.arg_n <= setting->most);
    run_setter(apply, setting, &directive);
}

static void set_initial(struct apply *apply, const struct setting *setting)
{
    struct conf_word value = { .text = setting->initial };
    struct conf_directive directive = {
        .name = { .text = setting->name },
        .args = &value,
        .arg_n = 1,
    };

    run_setter(apply, setting, &directive);
}

void apply_initial(struct apply *apply, struct scope *scope, const struct setting *setting)
{
    bool custom = setting->declared != NULL && setting->declared->value == FB_VALUE_CUSTOM;
    struct scope *saved = apply->scope;

    assert(setting->at & scope->at);
    assert(setting->initial == NULL || setting->unset == NULL);
    apply->scope = scope;
    if (setting->protocol != NULL) {
        apply->report->module = protocol_module(apply, setting->protocol);
        apply->report->directive = setting->name;
    }
    if (setting->initial == NULL && setting->unset_value != 0)
        *(int64_t *)field_of(apply, setting, NULL) = setting->unset_value;
    else if (setting->initial != NULL && custom)
        set_initial_custom(apply, setting);
    else if (setting->initial != NULL && setting->most > 1)
        set_initial_words(apply, setting);
    else if (setting->initial != NULL)
        set_initial(apply, setting);
    apply->report->module = apply->report->directive = NULL;
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

void apply_scope(
    struct apply *apply, struct scope *scope, unsigned at, const struct conf_directive *directive)
{
    unsigned errors = apply->report->error_n;

    CHECK_KIND(apply, APPLY_KIND);
    scope_init(scope, at, apply->scope);
    scope->directive = directive;
    apply->scope = scope;
    if (directive != NULL)
        apply_block(apply, directive->block);
    if (apply->report->error_n > errors + scope->server_errors)
        scope->refused = true;
    assert(apply->scope == scope); /* inner scopes were left */
    apply->scope = scope->outer;
}

void apply_defaults(struct apply *apply, struct scope *scope, const struct setting *table)
{
    struct scope *outer = scope->outer;

    CHECK_KIND(scope, SCOPE_KIND);
    assert(outer == NULL || scope->settings == NULL || outer->settings != NULL);
    for (const struct setting *setting = table; setting->name != NULL; setting++) {
        if (!(setting->at & scope->at) || scope_sets_field(scope, table, setting))
            continue;
        if (outer != NULL && setting->size > 0 && scope_find(outer, setting) != NULL)
            memcpy((char *)block_base(scope, setting) + setting->offset,
                (char *)block_base(outer, setting) + setting->offset, setting->size);
        else
            apply_initial(apply, scope, setting);
    }
}

void apply_table_defaults(struct cycle *cycle, struct server_settings *settings, void **features,
    unsigned at, const struct setting *table)
{
    struct conf_report report;
    struct scope scope = {
        .kind = SCOPE_KIND, .at = at, .settings = settings, .features = features
    };
    struct apply apply = { .kind = APPLY_KIND, .cycle = cycle, .report = &report };

    report_init(&report, NULL);
    STAILQ_INIT(&scope.seen);
    apply_defaults(&apply, &scope, table);
    assert(report.error_n == 0); /* a default of a table is wrong */
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

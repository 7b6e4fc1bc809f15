/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies directives by the rows of the tables: unknown names, the form of a directive,
 * repetitions, defaults and inheritance are checked here, so that a setter is called only with the
 * right number of arguments. */
#include "settings/apply.h"

#include "base/check.h"
#include "settings/blocks.h"
#include "settings/haproxy.h"
#include "settings/nginx_only.h"
#include "settings/protocol.h"
#include "settings/set_value.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNIX "unix:"

/* Room for the names of all contexts. */
#define CONTEXTS_TEXT 96

/* A default of ours: its words, and its bytes. */
#define INITIAL_WORDS_MAX 4
#define INITIAL_MAX 64

/* Lists the contexts: `"stream", "server" or "upstream"`. */
static const char *name_contexts(unsigned at, char text[CONTEXTS_TEXT])
{
    static const char *const names[] = { "the main context", "\"events\"", "\"stream\"",
        "\"server\"", "\"upstream\"" };
    int n = 0;

    static_assert(CONTEXT_ANY == (1u << countof(names)) - 1, "each context has a name");
    for (unsigned i = 0; i < countof(names); i++) {
        unsigned bit = 1u << i, rest = at & ~(2 * bit - 1);
        const char *behind = rest == 0 ? "" : (rest & (rest - 1)) == 0 ? " or " : ", ";

        if (at & bit)
            n += snprintf(text + n, CONTEXTS_TEXT - (size_t)n, "%s%s", names[i], behind);
    }
    assert(n > 0 && n < CONTEXTS_TEXT);
    return text;
}

void *apply_alloc(struct apply *apply, size_t size)
{
    void *p = arena_alloc(apply->cycle->arena, size);

    if (p == NULL)
        report_error(apply->report, NULL, "out of memory");
    return p;
}

void *apply_grow(struct apply *apply, void *list, unsigned n, size_t size)
{
    void *larger = apply_alloc(apply, (n + 1) * size);

    assert(size > 0 && (n == 0) == (list == NULL));
    if (larger != NULL && n > 0)
        memcpy(larger, list, n * size);
    return larger;
}

char *apply_strdup(struct apply *apply, const char *text)
{
    char *copy = arena_strdup(apply->cycle->arena, text);

    if (copy == NULL)
        report_error(apply->report, NULL, "out of memory");
    return copy;
}

/* Puts `n` bytes of a directory before a relative path. */
static const char *join_path(struct apply *apply, const char *directory, size_t n, const char *path)
{
    assert(directory[0] == '/');
    if (path[0] != '/')
        path = arena_printf(apply->cycle->arena, "%.*s/%s", (int)n, directory, path);
    if (path == NULL)
        report_error(apply->report, NULL, "out of memory");
    return path;
}

const char *apply_conf_path(struct apply *apply, const char *text)
{
    const char *conf = apply->options->conf;

    return join_path(apply, conf, (size_t)(strrchr(conf, '/') - conf), text);
}

const char *apply_path(struct apply *apply, const char *text)
{
    const char *prefix = apply->options->prefix;

    return prefix == NULL ? apply_conf_path(apply, text)
                          : join_path(apply, prefix, strlen(prefix), text);
}

const char *apply_address(struct apply *apply, const char *text)
{
    const char *path;

    if (strncasecmp(text, UNIX, strlen(UNIX)) != 0 || text[strlen(UNIX)] == '\0')
        return text;
    path = apply_path(apply, text + strlen(UNIX));
    if (path == NULL || path == text + strlen(UNIX))
        return path == NULL ? NULL : text;
    text = arena_printf(apply->cycle->arena, UNIX "%s", path);
    if (text == NULL)
        report_error(apply->report, NULL, "out of memory");
    return text;
}

/* An iterator over the rows of all tables. */
struct rows {
    const struct apply *apply;
    unsigned table, row;
    unsigned at; /* contexts of the rows that are wanted */
};

static const struct setting *next_row(struct rows *rows)
{
    const struct setting *const *tables = rows->apply->tables;

    assert(rows->at != 0);
    for (; tables[rows->table] != NULL; rows->table++, rows->row = 0)
        while (tables[rows->table][rows->row].name != NULL) {
            const struct setting *setting = &tables[rows->table][rows->row++];

            if (setting->at & rows->at)
                return setting;
        }
    return NULL;
}

static const char *next_row_name(void *arg)
{
    const struct setting *setting = next_row(arg);

    return setting != NULL ? setting->name : NULL;
}

static const struct setting *find_row(const struct apply *apply, const char *name, unsigned at)
{
    struct rows rows = { .apply = apply, .at = at };
    const struct setting *setting;

    while ((setting = next_row(&rows)) != NULL)
        if (strcmp(setting->name, name) == 0)
            return setting;
    return NULL;
}

/* Returns the contexts in which a directive of the name may stand: two tables may have it. */
static unsigned contexts_of(const struct apply *apply, const char *name)
{
    struct rows rows = { .apply = apply, .at = CONTEXT_ANY };
    const struct setting *setting;
    unsigned at = 0;

    while ((setting = next_row(&rows)) != NULL)
        if (strcmp(setting->name, name) == 0)
            at |= setting->at;
    return at;
}

const struct setting *apply_find_row(const struct apply *apply, const char *name)
{
    return find_row(apply, name, CONTEXT_ANY & ~(unsigned)CONTEXT_OWN);
}

/* Suggests something for an unknown name: what stands for a word of HAProxy's, or a name of this
 * context, of any, and of nginx. */
static void suggest_name(struct apply *apply, const struct conf_word *name)
{
    struct rows here = { .apply = apply, .at = apply->scope->at };
    struct rows anywhere = { .apply = apply, .at = CONTEXT_ANY };
    const char *haproxy = haproxy_hint(HAPROXY_DIRECTIVE, name->text);
    const char *near = nearest_name(name->text, next_row_name, &here);

    if (near == NULL)
        near = nearest_name(name->text, next_row_name, &anywhere);
    if (near == NULL)
        near = nginx_nearest_no_effect(name->text, apply->scope->at);
    if (haproxy != NULL)
        report_error(apply->report, name, "unknown directive \"%s\", " HAPROXY_WORD "%s",
            name->text, haproxy);
    else if (near != NULL)
        report_error(apply->report, name, "unknown directive \"%s\", did you mean \"%s\"?",
            name->text, near);
    else if ((near = nginx_nearest(name->text)) != NULL)
        report_error(apply->report, name,
            "unknown directive \"%s\", \"%s\" directive of nginx is not supported either%s",
            name->text, near, nginx_lacking(near));
    else
        report_error(apply->report, name, "unknown directive \"%s\"", name->text);
}

static void report_unknown(struct apply *apply, const struct conf_directive *directive)
{
    const struct conf_word *name = &directive->name;
    unsigned elsewhere = contexts_of(apply, name->text);
    unsigned no_effect = elsewhere == 0 ? nginx_no_effect(name->text) : 0;
    unsigned at = elsewhere != 0 ? elsewhere : no_effect;
    char contexts[CONTEXTS_TEXT];
    bool is_server_s = apply->scope->at & (CONTEXT_STREAM | CONTEXT_SERVER);

    if ((no_effect & apply->scope->at) && directive->block != NULL)
        report_error(apply->report, name,
            "directive \"%s\" is not terminated by \";\", it takes no block", name->text);
    else if (no_effect & apply->scope->at)
        report_notice(apply->report, name, "\"%s\" directive of nginx has no effect here, ignored",
            name->text);
    else if (at != 0)
        report_error(apply->report, name, "\"%s\" directive is not allowed here, it belongs in %s",
            name->text, name_contexts(at, contexts));
    else if (apply->lacks_module && is_server_s)
        apply->scope->refused = true;
    else if (nginx_only(name->text))
        report_error(apply->report, name, "\"%s\" directive of nginx is not supported%s",
            name->text, nginx_lacking(name->text));
    else
        suggest_name(apply, name);
}

bool apply_is_unterminated(
    struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const struct conf_word *before = &directive->name;

    for (unsigned i = 0; i <= arg && i < directive->arg_n; before = &directive->args[i++]) {
        const struct conf_word *word = &directive->args[i];

        if (word->line == before->line || find_row(apply, word->text, apply->scope->at) == NULL)
            continue;
        report_error(apply->report, before, "directive \"%s\" is not terminated by \";\"",
            directive->name.text);
        return true;
    }
    return false;
}

static bool check_arguments(
    struct apply *apply, const struct setting *setting, const struct conf_directive *directive)
{
    char expected[64];

    if (directive->arg_n >= setting->least && directive->arg_n <= setting->most)
        return true;
    if (apply_is_unterminated(apply, directive, directive->arg_n))
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

/* Returns the struct of a block of stream {} that the row sets. */
static void *block_base(const struct scope *scope, const struct setting *setting)
{
    assert(scope->settings != NULL);
    return setting->feature > 0 ? scope->features[setting->feature - 1] : scope->settings;
}

/* Returns the struct that the rows of a context set. */
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

/* Returns the field that the row sets; NULL after a report. */
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
    void *field = field_of(apply, setting, directive);

    assert(setting->set != NULL);
    if (field != NULL)
        setting->set(apply, setting, directive, field);
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
        apply->report->module = modules_name(apply, setting->protocol);
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
        const struct setting *setting = find_row(apply, directive->name.text, apply->scope->at);
        const struct conf_directive *substituted;

        if (apply->options->only_pid && (setting == NULL || !setting->finds_master))
            continue;
        if (setting == NULL)
            report_unknown(apply, directive);
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

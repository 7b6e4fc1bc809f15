/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks names of directives up in the tables, row by row, and suggests for an unknown name the
 * right context, or a similar name. */
#include "settings/rows.h"

#include "base/compiler.h"
#include "settings/apply.h"
#include "settings/nginx_only.h"

#include <stdio.h>
#include <string.h>

#define HAPROXY_CHECKS "checks of servers are \"health_check\" beside \"proxy_pass\""
#define HAPROXY_RUNS "\"health_check\" has interval=, fails= and passes="
#define HAPROXY_STICKS "\"hash $remote_addr consistent\" keeps a client with its server"
#define HAPROXY_TURNS                                                                              \
    "without a directive such as \"least_conn\", \"random\" or \"hash\" servers take turns"

static const struct {
    enum haproxy_place place;
    const char *word, *hint;
} haproxy_words[] = {
#define WORD(place, word, hint) { HAPROXY_##place, word, hint },
#include "settings/haproxy_words.def"
#undef WORD
};

const char *rows_haproxy_hint(enum haproxy_place place, const char *word)
{
    size_t n = strcspn(word, "=");

    for (size_t i = 0; i < countof(haproxy_words); i++)
        if (haproxy_words[i].place == place && strlen(haproxy_words[i].word) == n &&
            strncmp(haproxy_words[i].word, word, n) == 0)
            return haproxy_words[i].hint;
    return NULL;
}

/* Room for the names of all contexts. */
#define CONTEXTS_TEXT 96

/* Lists the contexts: `"stream", "server" or "upstream"`. */
static const char *name_contexts(unsigned at, char text[CONTEXTS_TEXT])
{
    static const char *const names[] = { "the main context", "\"events\"", "\"stream\"",
        "\"server\"", "\"upstream\"" };
    int n = 0;

    static_assert(CONTEXT_ANY == (1u << countof(names)) - 1, "every context has a name");
    for (unsigned i = 0; i < countof(names); i++) {
        unsigned bit = 1u << i, rest = at & ~(2 * bit - 1);
        const char *behind = rest == 0 ? "" : (rest & (rest - 1)) == 0 ? " or " : ", ";

        if (at & bit)
            n += snprintf(text + n, CONTEXTS_TEXT - (size_t)n, "%s%s", names[i], behind);
    }
    assert(n > 0 && n < CONTEXTS_TEXT);
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

const struct setting *rows_find(const struct apply *apply, const char *name, unsigned at)
{
    struct rows rows = { .apply = apply, .at = at };
    const struct setting *setting;

    while ((setting = next_row(&rows)) != NULL)
        if (strcmp(setting->name, name) == 0)
            return setting;
    return NULL;
}

/* Returns the contexts in which a directive of the name may stand: two tables may have the name. */
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

static const char *nearest_row(const struct apply *apply, const char *name, unsigned at)
{
    struct rows rows = { .apply = apply, .at = at };
    struct nearest near = { .word = name };
    const struct setting *setting;

    while ((setting = next_row(&rows)) != NULL)
        nearest_try(&near, setting->name);
    return near.found;
}

/* Suggests the directive for a word of HAProxy's, or a name here, anywhere, or of nginx. */
static void suggest_name(struct apply *apply, const struct conf_word *name)
{
    const char *haproxy = rows_haproxy_hint(HAPROXY_DIRECTIVE, name->text);
    const char *near = nearest_row(apply, name->text, apply->scope->at);

    if (near == NULL)
        near = nearest_row(apply, name->text, CONTEXT_ANY);
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

void rows_report_unknown(struct apply *apply, const struct conf_directive *directive)
{
    const struct conf_word *name = &directive->name;
    unsigned elsewhere = contexts_of(apply, name->text);
    unsigned no_effect = elsewhere == 0 ? nginx_no_effect(name->text) : 0;
    unsigned at = elsewhere != 0 ? elsewhere : no_effect;
    char contexts[CONTEXTS_TEXT];
    bool is_server_s = apply->scope->at & (CONTEXT_STREAM | CONTEXT_SERVER);

    if ((no_effect & apply->scope->at) && directive->block != NULL)
        report_error(apply->report, name,
            "directive \"%s\" is not terminated by \";\", and takes no block", name->text);
    else if (no_effect & apply->scope->at)
        report_notice(apply->report, name, "\"%s\" directive of nginx has no effect here, ignored",
            name->text);
    else if (at != 0)
        report_error(apply->report, name, "\"%s\" directive is not allowed here, and belongs in %s",
            name->text, name_contexts(at, contexts));
    else if (apply->lacks_module && is_server_s)
        apply->scope->refused = true;
    else if (nginx_only(name->text))
        report_error(apply->report, name, "\"%s\" directive of nginx is not supported%s",
            name->text, nginx_lacking(name->text));
    else
        suggest_name(apply, name);
}

bool rows_is_unterminated(struct apply *apply, const struct conf_directive *directive, unsigned arg)
{
    const struct conf_word *before = &directive->name;

    for (unsigned i = 0; i <= arg && i < directive->arg_n; before = &directive->args[i++]) {
        const struct conf_word *word = &directive->args[i];

        if (word->line == before->line || rows_find(apply, word->text, apply->scope->at) == NULL)
            continue;
        report_error(apply->report, before, "directive \"%s\" is not terminated by \";\"",
            directive->name.text);
        return true;
    }
    return false;
}

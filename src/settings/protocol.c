/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes rows of the protocols' declarations, and gives each server a protocol and values. conf_done
 * runs only for a server without mistakes. */
#include "settings/protocol.h"

#include "base/check.h"
#include "session/stream.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/calls.h"
#include "settings/lookup.h"
#include "settings/protocol_tls.h"
#include "settings/set_value.h"
#include "settings/template.h"
#include "text/variable.h"

#include <limits.h>
#include <string.h>

/* ---- Values ---- */

static unsigned index_of_protocol(const struct apply *apply, const fb_protocol *protocol)
{
    unsigned i = 0;

    while (apply->cycle->protocols[i] != protocol) {
        assert(apply->cycle->protocols[i] != NULL);
        i++;
    }
    assert(i < STREAM_PROTOCOLS_MAX);
    return i;
}

/* Returns a directive of the protocol with the flags, written in the scope, or NULL. */
static const struct scope_entry *find_seen(
    const struct scope *scope, const fb_protocol *protocol, uint32_t flags)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting->protocol == protocol &&
            (seen->setting->declared->flags & flags) == flags)
            return seen;
    return NULL;
}

/* Returns the stream's values of a protocol; NULL if it has no values, or after a report. */
static void *make_stream_conf(
    struct apply *apply, struct scope *stream, const fb_protocol *protocol)
{
    void **conf = &stream->confs[index_of_protocol(apply, protocol)];

    if (*conf == NULL && protocol->conf_state > 0)
        *conf = apply_alloc(apply, protocol_tls_conf_size(apply, protocol));
    return *conf;
}

/* Makes the protocol the server's only protocol; -1 after a report. */
static int claim_server(struct apply *apply, const struct conf_directive *directive)
{
    struct server *server = apply->scope->server;
    const fb_protocol *protocol = apply->setting->protocol;

    CHECK_KIND(apply->scope, SCOPE_KIND);
    if (server->protocol == NULL) {
        server->protocol = protocol;
        server->protocol_index = index_of_protocol(apply, protocol);
        if (protocol->conf_state > 0)
            server->protocol_conf = apply_alloc(apply, protocol_tls_conf_size(apply, protocol));
    }
    if (server->protocol != protocol) {
        const struct scope_entry *other = find_seen(apply->scope, server->protocol, 0);

        return report_error(apply->report, &directive->name,
            "\"%s\" directive conflicts with \"%s\" in line %u: a server has one protocol",
            apply->setting->name, other->setting->name, other->directive->name.line);
    }
    return 0;
}

/* Returns the field of the directive in the current server or stream; NULL after a report. */
static void *find_field(struct apply *apply, const struct conf_directive *directive)
{
    const fb_protocol *protocol = apply->setting->protocol;
    struct server *server = apply->scope->server;
    char *conf;

    assert(protocol != NULL && (apply->scope->at & (CONTEXT_STREAM | CONTEXT_SERVER)));
    if (server != NULL && claim_server(apply, directive) == -1)
        return NULL;
    if (protocol->conf_state == 0)
        return apply->scope; /* no value to set */
    conf = server != NULL ? server->protocol_conf : make_stream_conf(apply, apply->scope, protocol);
    return conf == NULL ? NULL : conf + apply->setting->offset; /* no memory, which was reported */
}

static int set_target(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct fb_target *target = apply_alloc(apply, sizeof(*target));
    const char *text = apply_address(apply, directive->args[0].text), *wrong;

    if (target == NULL || text == NULL)
        return -1;
    wrong = lookup_target(apply, text, target);
    if (wrong != NULL)
        return set_bad_value(apply, directive, 0, "%s", wrong);
    needs_add_target(apply, target);
    *(const struct fb_target **)field = target;
    return 0;
}

static int set_read_path(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const char *text = directive->args[0].text;

    *(const char **)field = *text == '\0' ? text : apply_path(apply, text);
    return *(const char **)field == NULL ? -1 : 0;
}

/* Returns the place in the configuration for a call of the SDK. */
static struct fb_conf conf_at(struct apply *apply, const struct conf_directive *directive)
{
    return (struct fb_conf) {
        .apply = apply,
        .scope = apply->scope,
        .protocol = apply->setting->protocol,
        .directive = directive,
    };
}

/* A default has no place, and its words are gone when the setter returns. */
static int set_template(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct fb_conf conf = conf_at(apply, directive);
    const char *text = directive->args[0].text;

    if (apply_find(apply->scope, apply->setting) != NULL)
        *(const fb_template **)field =
            (const fb_template *)template_of(apply, &directive->args[0], text);
    else
        *(const fb_template **)field = settings_template(&conf, apply->setting->name, text);
    return *(const fb_template **)field != NULL ? 0 : -1;
}

static int set_custom(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct setting *setting = apply->setting;
    struct fb_conf conf = conf_at(apply, directive);
    const char **args = apply_alloc(apply, (directive->arg_n + 1) * sizeof(*args));
    unsigned errors = apply->report->error_n;
    int status;

    assert(setting->declared->set != NULL);
    if (args == NULL)
        return -1;
    for (unsigned i = 0; i < directive->arg_n; i++)
        args[i] = directive->args[i].text;
    check_progress_enter(apply->options->progress, &directive->name, "when its directive was set",
        "protocol \"%s\"", setting->protocol->name);
    status = setting->declared->set(
        &conf, setting->protocol->conf_state > 0 ? field : NULL, args, directive->arg_n);
    check_progress_leave(apply->options->progress);
    if (status != 0 && apply->report->error_n == errors)
        report_error(apply->report, &directive->name,
            "invalid \"%s\" directive: protocol \"%s\" refuses it without a message", setting->name,
            setting->protocol->name);
    return status == 0 ? 0 : -1;
}

static const struct {
    unsigned char arguments, width;
    int (*set)(struct apply *apply, const struct conf_directive *directive, void *field);
} values[] = {
    [FB_VALUE_NONE] = { 0, 0, set_nothing },
    [FB_VALUE_STRING] = { 1, sizeof(const char *), set_string },
    [FB_VALUE_NUMBER] = { 1, sizeof(int64_t), set_number },
    [FB_VALUE_SIZE] = { 1, sizeof(int64_t), set_size_or_off },
    [FB_VALUE_MSEC] = { 1, sizeof(int64_t), set_msec },
    [FB_VALUE_FLAG] = { 1, sizeof(int64_t), set_flag },
    [FB_VALUE_NAME] = { 1, sizeof(int64_t), set_name },
    [FB_VALUE_TARGET] = { 1, sizeof(const struct fb_target *), set_target },
    [FB_VALUE_CUSTOM] = { .set = set_custom },
    [FB_VALUE_TEMPLATE] = { 1, sizeof(const struct fb_template *), set_template },
    [FB_VALUE_TLS] = { 1, sizeof(const struct fb_tls_profile *), NULL },
};

/* The setter of all rows. */
static int set_protocol_value(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    const fb_directive *declared = apply->setting->declared;

    field = find_field(apply, directive);
    if (field == NULL)
        return -1;
    if (apply->setting->tls != NULL)
        return apply->setting->tls->set(apply, directive, field);
    if (declared->flags & (FB_DIRECTIVE_READS | FB_DIRECTIVE_WRITES))
        return set_read_path(apply, directive, field);
    return values[declared->value].set(apply, directive, field);
}

/* ---- Rows ---- */

static unsigned char clamp_arguments(uint32_t arguments)
{
    return arguments < UCHAR_MAX ? (unsigned char)arguments : UCHAR_MAX;
}

static struct setting row_of(const fb_protocol *protocol, const fb_directive *directive)
{
    bool handler = (directive->flags & FB_DIRECTIVE_HANDLER) != 0;
    struct setting row = {
        .name = directive->name,
        .at = handler ? CONTEXT_SERVER : CONTEXT_STREAM | CONTEXT_SERVER,
        .least = values[directive->value].arguments,
        .most = values[directive->value].arguments,
        .set = set_protocol_value,
        .offset = directive->offset,
        .size = values[directive->value].width,
        .least_value = directive->least,
        .greatest_value = directive->greatest,
        .names = directive->names,
        .initial = directive->initial,
        .protocol = protocol,
        .declared = directive,
    };

    assert((size_t)directive->value < countof(values)); /* module/check.c has checked it */
    if (directive->value == FB_VALUE_CUSTOM) {
        row.least = clamp_arguments(directive->args_least);
        row.most = clamp_arguments(directive->args_most);
        row.size = directive->room;
    }
    return row;
}

/* Appends the rows of a protocol; returns the end, or NULL after a report. */
static struct setting *append_rows(
    struct apply *apply, struct setting *end, const fb_protocol *protocol)
{
    for (uint32_t i = 0; end != NULL && i < protocol->directive_n; i++) {
        const struct setting row = row_of(protocol, &protocol->directives[i]);

        if (row.declared->value == FB_VALUE_TLS)
            end = protocol_tls_append(apply, end, &row);
        else
            *end++ = row;
    }
    return end;
}

/* Makes the rows of all protocols; NULL after a report. */
static const struct setting *make_rows(struct apply *apply, const fb_protocol *const *protocols)
{
    struct setting *table, *end;
    size_t n = 0;

    for (int i = 0; protocols[i] != NULL; i++)
        n += protocols[i]->directive_n + protocol_tls_row_n(apply, protocols[i]);
    table = apply_alloc(apply, (n + 1) * sizeof(*table));
    end = table;
    for (int i = 0; end != NULL && protocols[i] != NULL; i++)
        end = append_rows(apply, end, protocols[i]);
    return end != NULL ? table : NULL;
}

int protocol_add(struct apply *apply, const fb_protocol *protocol)
{
    const fb_protocol *const *before =
        protocol == NULL ? apply->options->protocols : apply->cycle->protocols;
    const struct setting *rows;
    const fb_protocol **all;
    size_t n = 0;

    while (before[n] != NULL)
        n++;
    all = apply_alloc(apply, (n + 2) * sizeof(fb_protocol *));
    if (all == NULL)
        return -1;
    memcpy(all, before, n * sizeof(fb_protocol *));
    all[n] = protocol;
    rows = make_rows(apply, all);
    if (rows == NULL)
        return -1;
    apply->cycle->protocols = all;
    apply->tables[TABLE_PROTOCOLS] = rows;
    return 0;
}

const char *protocol_module(const struct apply *apply, const fb_protocol *protocol)
{
    const struct module *module;

    SLIST_FOREACH (module, &apply->cycle->modules, link)
        if (module->protocol == protocol)
            return module->path;
    return protocol->name;
}

static void set_initial_value(struct apply *apply, struct scope *scope, const struct setting *row)
{
    apply->report->module = protocol_module(apply, row->protocol);
    apply->report->directive = row->name;
    apply_initial(apply, scope, row);
    apply->report->module = apply->report->directive = NULL;
}

static void set_initial_values(
    struct apply *apply, struct scope *stream, const fb_protocol *protocol)
{
    for (const struct setting *row = apply->tables[TABLE_PROTOCOLS]; row->name != NULL; row++)
        if (row->protocol == protocol && (row->at & CONTEXT_STREAM) &&
            apply_find(stream, row) == NULL)
            set_initial_value(apply, stream, row);
}

static const char *handler_of(const fb_protocol *protocol)
{
    for (uint32_t i = 0; i < protocol->directive_n; i++)
        if (protocol->directives[i].flags & FB_DIRECTIVE_HANDLER)
            return protocol->directives[i].name;
    return protocol->name;
}

static bool has_handler(struct apply *apply, const struct scope *scope)
{
    const fb_protocol *protocol = scope->server->protocol;
    const struct scope_entry *seen = find_seen(scope, protocol, 0);

    if (find_seen(scope, protocol, FB_DIRECTIVE_HANDLER) != NULL)
        return true;
    if (apply_is_whole(apply, scope))
        report_error(apply->report, &seen->directive->name,
            "\"%s\" directive needs \"%s\" in the same server", seen->setting->name,
            handler_of(protocol));
    return false;
}

/* Sets unwritten values of the server: from the stream, if written there, or the default. */
static void inherit_values(struct apply *apply, struct scope *scope, const char *parent)
{
    const struct server *server = scope->server;

    for (const struct setting *row = apply->tables[TABLE_PROTOCOLS]; row->name != NULL; row++) {
        if (row->protocol != server->protocol || apply_find(scope, row) != NULL)
            continue;
        if (apply_find(scope->outer, row) == NULL)
            set_initial_value(apply, scope, row);
        else if (server->protocol_conf != NULL && parent != NULL)
            memcpy((char *)server->protocol_conf + row->offset, parent + row->offset, row->size);
    }
}

static void call_conf_done(struct apply *apply, struct scope *scope, const void *parent)
{
    const fb_protocol *protocol = scope->server->protocol;
    struct fb_conf conf = { .apply = apply, .scope = scope, .protocol = protocol };
    unsigned errors = apply->report->error_n;
    int status;

    check_progress_enter(apply->options->progress, &scope->directive->name,
        "when its configuration was done", "protocol \"%s\"", protocol->name);
    status = protocol->conf_done(&conf, scope->server->protocol_conf, parent);
    check_progress_leave(apply->options->progress);
    if (status != 0 && apply->report->error_n == errors)
        report_error(apply->report, &scope->directive->name,
            "protocol \"%s\" refuses this server without a message", protocol->name);
}

void protocol_finish(struct apply *apply, struct scope *scope)
{
    const fb_protocol *protocol = scope->server->protocol;
    unsigned index = scope->server->protocol_index, errors;
    const void *parent;

    assert(scope->at == CONTEXT_SERVER && scope->outer->at == CONTEXT_STREAM);
    if (protocol == NULL || !has_handler(apply, scope))
        return;
    errors = apply->report->error_n;
    if (!scope->outer->finished[index]) {
        scope->outer->finished[index] = true;
        make_stream_conf(apply, scope->outer, protocol);
        set_initial_values(apply, scope->outer, protocol);
    }
    parent = scope->outer->confs[index];
    inherit_values(apply, scope, parent);
    if (apply_is_whole(apply, scope) && !scope->outer->refused)
        protocol_tls_finish(apply, scope);
    if (protocol->metric_n > 0)
        scope->server->metrics = settings_protocol_metrics(apply, protocol);
    if (protocol->conf_done != NULL && apply_is_whole(apply, scope) && !scope->outer->refused &&
        apply->report->error_n == errors)
        call_conf_done(apply, scope, parent);
}

/* Defines one variable; -1 after a report. */
static int define_variable(struct apply *apply, const fb_protocol *protocol, uint32_t i)
{
    const fb_variable_definition *definition = &protocol->variables[i];
    struct variable *variable = variables_add(apply->cycle->stream.variables, apply->cycle->arena,
        definition->name, strlen(definition->name));

    if (variable == NULL)
        return report_error(apply->report, NULL, "out of memory");
    if (variable->get != NULL)
        return report_error(apply->report, &apply->stream->name,
            "protocol \"%s\" defines the variable \"%s\", already defined elsewhere",
            protocol->name, variable->name);
    variable->get = variables_protocol_get;
    variable->arg = protocol;
    variable->number = i;
    if (definition->flags & FB_VARIABLE_VOLATILE)
        variable->flags = VARIABLE_VOLATILE;
    return 0;
}

/* From the beginning of stream {}, so that no directive defines a variable of the same name. */
void protocol_define_variables(struct apply *apply)
{
    for (size_t i = 0; apply->cycle->protocols[i] != NULL; i++)
        for (uint32_t j = 0; j < apply->cycle->protocols[i]->variable_n; j++)
            if (define_variable(apply, apply->cycle->protocols[i], j) == -1)
                return;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a configuration in the necessary order: the directives of the command line, the file, the
 * stream block, then defaults and computed values. After any mistake there is no cycle. */
#include "settings/cycle.h"

#include "base/check.h"
#include "net/listener_open.h"
#include "net/listener_set.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/feature.h"
#include "settings/protocol.h"
#include "text/variable.h"

#include <assert.h>
#include <string.h>

static void require_block(struct apply *apply, const struct scope *scope, const char *name)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &scope->seen, link)
        if (strcmp(seen->setting->name, name) == 0)
            return;
    report_error(
        apply->report, NULL, "no \"%s\" section in configuration %s", name, apply->options->conf);
}

/* Applies the directives of a text that could be parsed. */
static void apply_text(struct apply *apply, const struct conf_block *block, unsigned errors)
{
    apply->cut = apply->cut || apply->report->error_n > errors;
    if (block != NULL)
        apply_block(apply, block);
}

/* Sets missing values, and values derived from the complete settings. */
static void finish_all(struct apply *apply, struct scope *scope)
{
    apply_defaults(apply, scope, core_table);
    core_finish(apply);
    events_finish(apply);
    sizing_finish(apply);
    stream_warn(apply);
    needs_collect(apply);
}

static void read_all(struct apply *apply)
{
    const struct cycle_options *options = apply->options;
    struct conf_source *source = &apply->cycle->source;
    struct scope scope;
    struct conf_block *block;
    unsigned errors = apply->report->error_n;

    memset(&scope, 0, sizeof(scope));
    apply_scope(apply, &scope, CONTEXT_MAIN, NULL);
    apply->scope = &scope;
    if (options->globals != NULL) {
        block = conf_parse_text(source, "command line", options->globals, strlen(options->globals));
        apply_text(apply, block, errors);
        errors = apply->report->error_n;
    }
    block = conf_parse_file(source, options->conf, NULL);
    apply_text(apply, block, errors);

    if (options->only_pid) {
        core_finish_paths(apply);
        return;
    }
    if (apply->stream != NULL)
        stream_apply(apply);

    scope.refused = apply->report->error_n > 0;
    if (apply_is_whole(apply, &scope))
        require_block(apply, &scope, "events");
    if (apply->report->error_n == 0)
        finish_all(apply, &scope);
    paths_check(apply);
}

static void apply_configuration(
    struct cycle *cycle, const struct cycle_options *options, struct conf_report *report)
{
    struct apply apply = {
        .kind = APPLY_KIND, .cycle = cycle, .report = report, .options = options
    };
    const struct setting *mechanisms = events_mechanism_table(&apply);
    const struct setting *features = feature_rows(&apply);

    STAILQ_INIT(&apply.paths);
    if (mechanisms == NULL || features == NULL ||
        protocol_add(&apply, NULL) == -1) /* the last table */
        return;
    apply.tables[TABLE_CORE] = core_table;
    apply.tables[TABLE_EVENTS] = events_table;
    apply.tables[TABLE_MECHANISMS] = mechanisms;
    apply.tables[TABLE_STREAM] = features;
    apply.tables[TABLE_UPSTREAM] = upstream_table;
    read_all(&apply);
}

static struct cycle *create_cycle(const struct memory *memory)
{
    struct arena *arena = memory != NULL ? arena_create_from(memory) : arena_create();
    struct cycle *cycle = arena == NULL ? NULL : arena_alloc(arena, sizeof(*cycle));
    struct variables *variables = cycle == NULL ? NULL : arena_alloc(arena, sizeof(*variables));

    if (variables == NULL) {
        arena_destroy(&arena);
        return NULL;
    }
    cycle->arena = arena;
    cycle->stream.variables = variables;
    STAILQ_INIT(&cycle->stream.servers);
    STAILQ_INIT(&cycle->stream.upstreams);
    STAILQ_INIT(&cycle->stream.listen_stats);
    RB_INIT(&variables->all);
    listener_set_init(&cycle->stream.listeners);
    STAILQ_INIT(&cycle->needs.paths);
    STAILQ_INIT(&cycle->needs.ports);
    zones_init(&cycle->zones);
    SLIST_INIT(&cycle->modules);
    return cycle;
}

struct cycle *cycle_load(const struct cycle_options *options, struct log *log, int excerpts)
{
    struct cycle *cycle = create_cycle(options->memory);
    struct conf_report *report = cycle == NULL ? NULL : arena_alloc(cycle->arena, sizeof(*report));
    bool usable;

    assert(options->conf != NULL && options->conf[0] == '/');
    assert(options->protocols != NULL && options->features != NULL);
    if (report == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the configuration");
        cycle_destroy(&cycle);
        return NULL;
    }
    cycle->engine = options->engine;
    report_init(report, cycle->arena);
    conf_source_init(&cycle->source, cycle->arena, report);
    cycle->source.lenient = options->testing;
    apply_configuration(cycle, options, report);
    usable = report->error_n == 0 || (options->only_pid && cycle->core.pid != NULL);
    if (!usable || (report->error_n == 0 && options->progress == NULL))
        report_show(report, log, excerpts);
    assert(!usable || options->only_pid || cycle->events.mechanism != NULL);
    if (!usable)
        cycle_destroy(&cycle);
    return cycle;
}

struct cycle *cycle_share(struct cycle *cycle)
{
    cycle->shared++;
    return cycle;
}

void cycle_destroy(struct cycle **cycle)
{
    struct arena *arena;

    if (*cycle == NULL)
        return;
    if ((*cycle)->shared > 0) {
        (*cycle)->shared--;
        *cycle = NULL;
        return;
    }
    while (!SLIST_EMPTY(&(*cycle)->modules)) /* modules may use modules loaded earlier */
        module_unload(&(*cycle)->modules);
    arena = (*cycle)->arena;
    assert(arena != NULL);
    *cycle = NULL;
    arena_destroy(&arena);
}

/* Returns the wildcard that takes in the address, or NULL for an address with its own socket. */
static const struct listener *find_wide(
    const struct listeners *listeners, const struct listener *narrow)
{
    if (address_is_wildcard(&narrow->address) ||
        listener_set_at(listeners, &narrow->address) != NULL)
        return NULL;
    return listener_set_overlap(listeners, narrow, NULL);
}

int cycle_keep_listeners(struct cycle *cycle, const struct listeners *before)
{
    const struct listener *old, *wide;
    struct listener *listener;

    assert(before != &cycle->stream.listeners);
    STAILQ_FOREACH (old, &before->list, link) {
        wide = find_wide(&cycle->stream.listeners, old);
        if (wide == NULL)
            continue;
        listener = listener_create(cycle->arena, &old->address, &wide->options);
        if (listener == NULL)
            return -1;
        listener->owner = wide->owner;
        listener->word = wide->word;
        listener_set_add(&cycle->stream.listeners, listener);
    }
    return 0;
}

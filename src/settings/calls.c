/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of protocols with the places of directives, texts with variables, and declared maps and
 * metrics: zones of a name have one layout in all servers. */
#include "settings/calls.h"

#include "base/check.h"
#include "module/module.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/protocol.h"
#include "settings/template.h"
#include "shm/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static_assert((int)FB_COUNTER == (int)SHM_COUNTER && (int)FB_GAUGE == (int)SHM_GAUGE,
    "kinds are the shared memory's");

static const struct conf_word *find_written(
    const struct scope *scope, const fb_protocol *protocol, const char *name)
{
    const struct scope_entry *seen;

    STAILQ_FOREACH (seen, &scope->seen, link)
        if (seen->setting->protocol == protocol && strcmp(seen->setting->name, name) == 0)
            return &seen->directive->name;
    return NULL;
}

const struct conf_word *settings_place(const struct fb_conf *conf, const char *directive)
{
    const struct scope *scope = conf->scope;
    const struct conf_word *word = NULL;

    CHECK_KIND(conf->apply, APPLY_KIND);
    CHECK_KIND(conf->scope, SCOPE_KIND);
    assert(conf->protocol != NULL);
    if (conf->directive != NULL &&
        find_written(conf->scope, conf->protocol, conf->directive->name.text) != NULL)
        return &conf->directive->name;
    if (directive == NULL)
        return &conf->scope->directive->name;
    while (word == NULL && scope != NULL && (scope->at & (CONTEXT_STREAM | CONTEXT_SERVER))) {
        word = find_written(scope, conf->protocol, directive);
        scope = scope->outer;
    }
    return word != NULL ? word : &conf->scope->directive->name;
}

int settings_vreport(fb_conf *conf, const char *directive, const char *format, va_list args)
{
    char text[1024];

    vsnprintf(text, sizeof(text), format, args);
    return report_error(conf->apply->report, settings_place(conf, directive), "%s", text);
}

int settings_report(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

const struct fb_target *settings_target(fb_conf *conf, const char *directive, const char *text)
{
    struct fb_target *target = apply_alloc(conf->apply, sizeof(*target));
    const char *address = apply_address(conf->apply, text), *wrong;

    if (target == NULL || address == NULL)
        return NULL;
    wrong = lookup_target(conf->apply, address, target);
    if (wrong == NULL) {
        needs_add_target(conf->apply, target);
        return target;
    }
    settings_report(conf, directive, "invalid address \"%s\": %s", text, wrong);
    return NULL;
}

const struct fb_pool *settings_pool(struct fb_conf *conf, const char *directive, const char *name)
{
    const struct fb_pool *pool = core_find_pool(&conf->apply->cycle->core, name);

    if (pool == NULL)
        settings_report(conf, directive, "there is no \"thread_pool\" of the name \"%s\"", name);
    return pool;
}

int settings_need(fb_conf *conf, uint64_t needs)
{
    struct server *server = conf->scope->server;

    CHECK_KIND(conf->scope, SCOPE_KIND);
    if (needs & ~(uint64_t)MODULE_NEEDS)
        return settings_report(conf, NULL,
            "protocol \"%s\" needs a right that this version of forkbeard does not know",
            conf->protocol->name);
    if (server != NULL)
        server->needs |= needs;
    else
        conf->apply->cycle->stream.needs |= needs;
    return 0;
}

/* Zones */

static const char *error_text(int error)
{
    if (error == EFBIG)
        return "with all zones a process has too few addresses: the map needs fewer or shorter "
               "entries";
    return error == ENOMEM ? "out of memory" : error == EOVERFLOW ? "too large" : strerror(error);
}

/* Bytes of an entry besides the key and the value, at most. */
#define ENTRY_BYTES 64
#define MEMORY_LEAST(o) ((uint64_t)(o)->key_max + (o)->value_max + ENTRY_BYTES)

/* Modules of API 3 have no such option. */
static uint64_t memory_of(const fb_map_options *options)
{
    return options->size >= sizeof(*options) ? options->memory : 0;
}

static const char *check_map(const fb_map_options *options)
{
    if (options->size < offsetof(fb_map_options, memory))
        return "the options begin with .size = sizeof(fb_map_options)";
    if (options->name == NULL || !module_is_name(options->name))
        return "the name has 1 to 31 letters, digits and \"_\"";
    if (options->capacity < 1 || options->capacity > SHM_MAP_CAPACITY_MAX)
        return "the capacity is 1 to 1073741824 entries";
    if (options->key_max < 1 || options->key_max > SHM_MAP_KEY_MAX)
        return "the key_max is 1 to 65535 bytes";
    if (options->value_max < 1 || options->value_max > SHM_MAP_VALUE_MAX)
        return "the value_max is 1 to 16777216 bytes";
    if (memory_of(options) != 0 && memory_of(options) < MEMORY_LEAST(options))
        return "the memory is too little for a key and a value";
    if (memory_of(options) > (uint64_t)UINT32_MAX * SHM_MAP_UNIT)
        return "the memory is 16 TiB at most";
    return NULL;
}

static struct shm_map_shape shape_of(const fb_map_options *o)
{
    return (struct shm_map_shape) { o->capacity, o->key_max, o->value_max,
        (uint32_t)((memory_of(o) + SHM_MAP_UNIT - 1) / SHM_MAP_UNIT) };
}

/* Whether the protocol takes changes of maps, and its maps need a change log. */
static bool has_change(const fb_protocol *protocol)
{
    return protocol->worker_ops != NULL && protocol->worker_ops->map_changed != NULL;
}

static struct fb_map *declare_map(struct fb_conf *conf, const char *name, const fb_map_options *o)
{
    struct cycle *cycle = conf->apply->cycle;
    struct fb_map *map = apply_alloc(conf->apply, sizeof(*map));
    char log_name[ZONE_NAME_MAX + 1];

    if (map == NULL || (map->handle = apply_alloc(conf->apply, sizeof(*map->handle))) == NULL)
        return NULL;
    map->shape = shape_of(o);
    map->zone =
        zone_declare(&cycle->zones, cycle->arena, &shm_map_kind, name, o->version, &map->shape);
    if (map->zone != NULL && has_change(conf->protocol)) {
        snprintf(log_name, sizeof(log_name), "%s+%s", conf->protocol->name, o->name);
        map->log = zone_declare(
            &cycle->zones, cycle->arena, &shm_map_log_kind, log_name, o->version, &map->shape);
    }
    if (map->zone != NULL && (map->log != NULL || !has_change(conf->protocol)))
        return map;
    settings_report(conf, NULL, "map \"%s\" cannot be declared: %s", name, error_text(errno));
    return NULL;
}

struct fb_map *settings_map(fb_conf *conf, const fb_map_options *options)
{
    const char *wrong = check_map(options);
    char name[ZONE_NAME_MAX + 1];
    struct shm_map_shape shape;
    struct zone *zone;
    struct fb_map *map;

    if (wrong != NULL) {
        settings_report(
            conf, NULL, "invalid map of protocol \"%s\": %s", conf->protocol->name, wrong);
        return NULL;
    }
    snprintf(name, sizeof(name), "%s.%s", conf->protocol->name, options->name);
    zone = zones_find(&conf->apply->cycle->zones, name);
    if (zone == NULL)
        return declare_map(conf, name, options);
    map = container_of(zone->shape, struct fb_map, shape);
    shape = shape_of(options);
    if (zone->version == options->version && memcmp(&map->shape, &shape, sizeof(shape)) == 0)
        return map;
    if (map->shape.memory != shape.memory)
        settings_report(conf, NULL,
            "map \"%s\" is declared with a memory of %" PRIu64
            " bytes, but another server declares the map with %" PRIu64 ": use the same value",
            name, (uint64_t)shape.memory * SHM_MAP_UNIT,
            (uint64_t)map->shape.memory * SHM_MAP_UNIT);
    else
        settings_report(conf, NULL,
            "map \"%s\" is declared with version %" PRIu32 ", %" PRIu32 " entries, keys of %" PRIu32
            " and values of %" PRIu32 " bytes, but another server declares the map with %" PRIu32
            ", %" PRIu32 ", %" PRIu32 " and %" PRIu32 ": use the same values",
            name, options->version, options->capacity, options->key_max, options->value_max,
            zone->version, map->shape.capacity, map->shape.key_max, map->shape.value_max);
    return NULL;
}

/* Workers have names of their own for the locks. */
void settings_open_maps(struct zones *zones, struct slot_id id)
{
    struct zone *zone;

    assert(slot_id_is_valid(id));
    STAILQ_FOREACH (zone, zones, link) {
        const struct fb_map *map;

        if (zone->kind != &shm_map_kind)
            continue;
        map = container_of(zone->shape, struct fb_map, shape);
        assert(map->zone == zone && zone_memory(zone) != NULL);
        shm_map_open(map->handle, zone_memory(zone), &map->shape, id);
        shm_map_log_open(map->handle, map->log != NULL ? zone_memory(map->log) : NULL);
    }
}

/* Hashes the names: a different list of names is a different layout. */
static uint32_t version_of(const fb_protocol *protocol)
{
    uint32_t hash = 2166136261u;

    for (uint32_t i = 0; i < protocol->metric_n; i++) {
        const char *name = protocol->metrics[i].name;

        do /* with the NUL */
            hash = (hash ^ (unsigned char)*name) * 16777619u;
        while (*name++ != '\0');
    }
    return hash;
}

struct zone *settings_protocol_metrics(struct apply *apply, const fb_protocol *protocol)
{
    struct cycle *cycle = apply->cycle;
    struct zone *zone = zones_find(&cycle->zones, protocol->name);
    struct shm_metrics_shape *shape;
    uint8_t *kinds;

    if (zone != NULL) /* another server has declared it */
        return zone;
    assert(protocol->metric_n > 0);
    shape = apply_alloc(apply, sizeof(*shape));
    kinds = apply_alloc(apply, protocol->metric_n);
    if (shape == NULL || kinds == NULL)
        return NULL;
    for (uint32_t i = 0; i < protocol->metric_n; i++)
        kinds[i] = (uint8_t)protocol->metrics[i].kind;
    *shape = (struct shm_metrics_shape) { .n = protocol->metric_n, .kinds = kinds };
    zone = zone_declare(&cycle->zones, cycle->arena, &shm_metrics_kind, protocol->name,
        version_of(protocol), shape);
    if (zone == NULL)
        report_error(apply->report, NULL, "the metrics of protocol \"%s\" cannot be declared: %s",
            protocol->name, error_text(errno));
    return zone;
}

/* Marks the bytes of a text that come from the environment, where the text is an argument's. */
static void set_plain(const fb_conf *conf, struct conf_word *word, const char *text)
{
    for (unsigned i = 0; conf->directive != NULL && i < conf->directive->arg_n; i++)
        if (conf->directive->args[i].text == text)
            word->plain = conf->directive->args[i].plain;
}

const struct conf_word *settings_word(const fb_conf *conf, const char *directive, const char *text)
{
    struct conf_word *word = apply_alloc(conf->apply, sizeof(*word));
    const char *copy = apply_strdup(conf->apply, text);

    if (word == NULL || copy == NULL)
        return NULL;
    *word = *settings_place(conf, directive);
    word->text = copy;
    word->plain = NULL;
    set_plain(conf, word, text);
    return word;
}

const fb_template *settings_template(fb_conf *conf, const char *directive, const char *text)
{
    const struct conf_word *word = settings_word(conf, directive, text);

    return word == NULL ? NULL : (const fb_template *)template_of(conf->apply, word, word->text);
}

const fb_variable *settings_variable(fb_conf *conf, const char *directive, const char *name)
{
    const struct conf_word *word = settings_word(conf, directive, name);
    const char *bare = name[0] == '$' ? name + 1 : name;
    size_t n = strspn(bare, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    if (word == NULL)
        return NULL;
    if (n > 0 && bare[n] == '\0')
        return (const fb_variable *)template_use(conf->apply, word, bare, n);
    settings_report(
        conf, directive, "invalid variable name \"%s\": expected letters, digits or \"_\"", name);
    return NULL;
}

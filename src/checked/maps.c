/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls on maps, and those of the configuration and the master, in the checked mode. Each does
 * nothing after a report. */
#include "checked/calls.h"
#include "settings/calls.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Maps ---- */

/* Whether the three are what a call on a map takes. */
static bool is_right(fb_worker *worker, fb_map *map, fb_bytes key, const char *call)
{
    return checked_worker(worker, call) != NULL && checked_map(map, call) != NULL &&
           checked_bytes(call, key.p, key.n, "key");
}

static bool is_item(const fb_item *item, const char *name, const char *call)
{
    return checked_given(call, item, name) && checked_bytes(call, item->value, item->room, name);
}

fb_map_status checked_map_get(fb_worker *worker, fb_map *map, fb_bytes key, fb_item *item)
{
    if (!is_right(worker, map, key, CHECKED_CALL) || !is_item(item, "item", CHECKED_CALL))
        return FB_MAP_ABSENT;
    return fb_map_get(worker, map, key, item);
}

fb_map_status checked_map_set(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes value, uint64_t ttl)
{
    if (!is_right(worker, map, key, CHECKED_CALL) ||
        !checked_bytes(CHECKED_CALL, value.p, value.n, "value"))
        return FB_MAP_ABSENT;
    return fb_map_set(worker, map, key, value, ttl);
}

fb_map_status checked_map_replace(
    fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version, fb_bytes value, uint64_t ttl)
{
    if (!is_right(worker, map, key, CHECKED_CALL) ||
        !checked_bytes(CHECKED_CALL, value.p, value.n, "value"))
        return FB_MAP_ABSENT;
    return fb_map_replace(worker, map, key, version, value, ttl);
}

fb_map_status checked_map_add(
    fb_worker *worker, fb_map *map, fb_bytes key, int64_t by, int64_t *sum)
{
    return is_right(worker, map, key, CHECKED_CALL) ? fb_map_add(worker, map, key, by, sum)
                                                    : FB_MAP_ABSENT;
}

fb_map_status checked_map_delete(fb_worker *worker, fb_map *map, fb_bytes key)
{
    return is_right(worker, map, key, CHECKED_CALL) ? fb_map_delete(worker, map, key)
                                                    : FB_MAP_ABSENT;
}

fb_map_status checked_map_remove(fb_worker *worker, fb_map *map, fb_bytes key, uint64_t version)
{
    return is_right(worker, map, key, CHECKED_CALL) ? fb_map_remove(worker, map, key, version)
                                                    : FB_MAP_ABSENT;
}

fb_map_status checked_map_append(
    fb_worker *worker, fb_map *map, fb_bytes key, fb_bytes bytes, uint64_t ttl)
{
    if (!is_right(worker, map, key, CHECKED_CALL) ||
        !checked_bytes(CHECKED_CALL, bytes.p, bytes.n, "bytes"))
        return FB_MAP_ABSENT;
    return fb_map_append(worker, map, key, bytes, ttl);
}

fb_map_status checked_map_next(
    fb_worker *worker, fb_map *map, fb_map_cursor *cursor, fb_item *key, fb_item *item)
{
    if (!is_right(worker, map, (fb_bytes) { NULL, 0 }, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, cursor, "cursor") || !is_item(key, "key", CHECKED_CALL) ||
        !is_item(item, "item", CHECKED_CALL))
        return FB_MAP_ABSENT;
    return fb_map_next(worker, map, cursor, key, item);
}

int checked_map_watch(fb_worker *worker, fb_map *map, int on)
{
    return is_right(worker, map, (fb_bytes) { NULL, 0 }, CHECKED_CALL)
               ? fb_map_watch(worker, map, on)
               : -1;
}

uint64_t checked_map_count(const fb_map *map)
{
    if (!checked_place_is_worker(NULL, CHECKED_CALL))
        return 0;
    map = checked_map((fb_map *)(uintptr_t)map, CHECKED_CALL);
    return map != NULL ? fb_map_count(map) : 0;
}

/* ---- The configuration ---- */

int checked_conf_errorf(fb_conf *conf, const char *directive, const char *format, ...)
{
    va_list args;

    if (!checked_place_is_conf(conf, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, format, "format"))
        return -1;
    va_start(args, format);
    settings_vreport(conf, directive, format, args);
    va_end(args);
    return -1;
}

void *checked_conf_alloc(fb_conf *conf, size_t n)
{
    return checked_place_is_conf(conf, CHECKED_CALL) ? fb_conf_alloc(conf, n) : NULL;
}

const fb_target *checked_conf_target(fb_conf *conf, const char *directive, const char *text)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, text, "text"))
        return NULL;
    return fb_conf_target(conf, directive, text);
}

const fb_pool *checked_conf_pool(fb_conf *conf, const char *directive, const char *name)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, name, "name"))
        return NULL;
    return fb_conf_pool(conf, directive, name);
}

const fb_template *checked_conf_template(fb_conf *conf, const char *directive, const char *text)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, text, "text"))
        return NULL;
    return fb_conf_template(conf, directive, text);
}

const fb_variable *checked_conf_variable(fb_conf *conf, const char *directive, const char *name)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, name, "name"))
        return NULL;
    return fb_conf_variable(conf, directive, name);
}

const fb_listener *checked_conf_listener(fb_conf *conf, const char *directive, const char *text)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, text, "text"))
        return NULL;
    return fb_conf_listener(conf, directive, text);
}

const fb_upstream *checked_conf_upstream(fb_conf *conf, const char *directive, const char *text)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) || !checked_given(CHECKED_CALL, text, "text"))
        return NULL;
    return fb_conf_upstream(conf, directive, text);
}

const fb_health_check *checked_conf_health_check(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options)
{
    fb_health_options own;

    if (!checked_place_is_conf(conf, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, directive, "directive") ||
        !checked_given(CHECKED_CALL, upstream, "upstream") ||
        !checked_options(CHECKED_CALL, &own, sizeof(own), options))
        return NULL;
    return fb_conf_health_check(conf, directive, upstream, &own);
}

int checked_conf_need(fb_conf *conf, uint64_t needs)
{
    return checked_place_is_conf(conf, CHECKED_CALL) ? fb_conf_need(conf, needs) : -1;
}

fb_map *checked_conf_map(fb_conf *conf, const fb_map_options *options)
{
    if (!checked_place_is_conf(conf, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, options, "options"))
        return NULL;
    return fb_conf_map(conf, options);
}

void checked_master_logf(fb_master *master, fb_log_level level, const char *format, ...)
{
    char text[CHECKED_LINE];
    va_list args;

    if (!checked_place_is_master(master, CHECKED_CALL) ||
        !checked_given(CHECKED_CALL, format, "format"))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fb_master_logf(master, level, "%s", text);
}

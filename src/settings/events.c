/* SPDX-License-Identifier: BSD-2-Clause */
/* `events {}`: its table, rows made of the mechanisms' own directives, and the choice of a
 * mechanism. */
#include "base/check.h"
#include "base/number.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/set_value.h"

#include <inttypes.h>
#include <string.h>

static FB_SETTER(set_use)
{
    const struct fb_mechanism *mechanism = fb_mechanism_find(directive->args[0].text);
    const char *names[FB_MECHANISMS_MAX + 1] = { NULL };

    (void)setting;
    (void)field;
    for (int i = 0; fb_mechanisms[i] != NULL; i++)
        names[i] = fb_mechanisms[i]->name;
    if (mechanism == NULL)
        return fb_bad_name(
            apply, directive, 0, names, "an event mechanism that was built in (see -V)");
    if (!mechanism->available())
        return fb_bad_value(apply, directive, 0, "this kernel does not support it");
    apply->cycle->events.mechanism = mechanism;
    apply->use = &directive->args[0];
    return 0;
}

static FB_SETTER(set_connections)
{
    struct fb_events_settings *events = &apply->cycle->events;
    const char *text = directive->args[0].text;
    int64_t any;

    events->connections_auto = strcmp(text, "auto") == 0;
    if (events->connections_auto)
        return 0;
    if (fb_parse_number(text, INT64_MIN, INT64_MAX, &any) == FB_NUMBER_MALFORMED)
        return fb_bad_value(apply, directive, 0, "expected a number, or \"auto\"");
    return fb_set_number(apply, setting, directive, field);
}

static FB_SETTER(set_debug_connection)
{
    struct fb_events_settings *events = &apply->cycle->events;
    struct fb_address_block *blocks =
        fb_apply_alloc(apply, (events->debug_n + 1) * sizeof(*blocks));
    const char *wrong;

    (void)setting;
    (void)field;
    if (blocks == NULL)
        return -1;
    if (events->debug_n > 0)
        memcpy(blocks, events->debug, events->debug_n * sizeof(*blocks));
    wrong = fb_address_block_parse(directive->args[0].text, &blocks[events->debug_n]);
    if (wrong != NULL)
        return fb_bad_value(apply, directive, 0, "%s", wrong);
    events->debug = blocks;
    events->debug_n++;
    return 0;
}

#define EVENTS(member) .offset = offsetof(struct fb_events_settings, member)

const struct fb_setting fb_events_table[] = {
    { "accept_mutex", FB_AT_EVENTS, 1, 1, .set = fb_set_flag, EVENTS(accept_mutex),
        .initial = "on" },
    { "accept_mutex_delay", FB_AT_EVENTS, 1, 1, .set = fb_set_msec, EVENTS(accept_mutex_delay),
        .least_value = 1, .greatest_value = 3600 * 1000, .initial = "500ms" },
    { "connections", FB_AT_EVENTS, 1, 1, .set = set_connections, EVENTS(worker_connections),
        .least_value = 1, .greatest_value = 16 * 1024 * 1024, .initial = "512" },
    { "debug_connection", FB_AT_EVENTS, 1, 1, .set = set_debug_connection, .repeats = true,
        .unset = "none" },
    { "multi_accept", FB_AT_EVENTS, 1, 1, .set = fb_set_flag, EVENTS(multi_accept),
        .initial = "off" },
    { "use", FB_AT_EVENTS, 1, 1, .set = set_use, .unset = "the best available" },
    { "worker_connections", FB_AT_EVENTS, 1, 1, .set = set_connections, EVENTS(worker_connections),
        .least_value = 1, .greatest_value = 16 * 1024 * 1024, .initial = "512" },
    { .name = NULL },
};

static void set_mechanism_defaults(struct fb_events_settings *events)
{
    for (unsigned i = 0; fb_mechanisms[i] != NULL; i++) {
        assert(i < FB_MECHANISMS_MAX);
        events->mechanism_options[i] = fb_mechanisms[i]->option.initial;
    }
}

void events_settings_defaults(struct fb_events_settings *events)
{
    struct fb_cycle cycle = { .arena = NULL };

    apply_table_defaults(&cycle, NULL, FB_AT_EVENTS, fb_events_table);
    set_mechanism_defaults(&cycle.events);
    *events = cycle.events;
}

const struct fb_setting *fb_mechanism_table(struct fb_apply *apply)
{
    struct fb_setting *table = fb_apply_alloc(apply, (FB_MECHANISMS_MAX + 1) * sizeof(*table));
    unsigned n = 0;

    if (table == NULL)
        return NULL;
    set_mechanism_defaults(&apply->cycle->events);
    for (unsigned i = 0; fb_mechanisms[i] != NULL; i++) {
        const struct fb_mechanism_option *option = &fb_mechanisms[i]->option;

        if (option->name == NULL)
            continue;
        table[n++] = (struct fb_setting) {
            .name = option->name,
            .at = FB_AT_EVENTS,
            .least = 1,
            .most = 1,
            .set = fb_set_number,
            .offset = offsetof(struct fb_events_settings, mechanism_options[0]) +
                      i * sizeof(apply->cycle->events.mechanism_options[0]),
            .least_value = option->least,
            .greatest_value = option->greatest,
        };
    }
    return table;
}

FB_SETTER(fb_set_events)
{
    struct fb_frame *scope = fb_apply_alloc(apply, sizeof(*scope));

    (void)setting;
    (void)field;
    if (scope == NULL)
        return -1;
    fb_apply_inner(apply, scope, FB_AT_EVENTS, directive);
    fb_apply_defaults(apply, scope, fb_events_table);
    return 0;
}

void fb_events_finish(struct fb_apply *apply)
{
    struct fb_events_settings *events = &apply->cycle->events;
    uint32_t most;

    CHECK_KIND(apply, APPLY_KIND);
    if (events->mechanism == NULL)
        events->mechanism = fb_mechanism_find(NULL);
    for (int i = 0; fb_mechanisms[i] != NULL; i++)
        if (fb_mechanisms[i] == events->mechanism)
            events->mechanism_option = events->mechanism_options[i];

    assert(events->mechanism != NULL);
    most = events->mechanism->descriptors_max;
    if (most > 0 && !events->connections_auto && events->worker_connections > most)
        fb_conf_error(apply->report, apply->use,
            "\"%s\" serves at most %u descriptors, and %" PRId64
            " \"worker_connections\" are more: lower them or use another mechanism",
            events->mechanism->name, most, events->worker_connections);
}

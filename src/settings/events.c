/* SPDX-License-Identifier: BSD-2-Clause */
/* `events {}`: the table, rows of the mechanisms' directives, and the choice of a mechanism. */
#include "base/check.h"
#include "base/number.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/nginx_only.h"
#include "settings/set_value.h"

#include <errno.h>
#include <inttypes.h>

static int set_use(struct apply *apply, const struct conf_directive *directive, void *field)
{
    const struct mechanism *mechanism = mechanism_find(directive->args[0].text);
    const char *names[MECHANISMS_MAX + 1] = { NULL };

    (void)field;
    for (int i = 0; mechanism_table[i] != NULL; i++)
        names[i] = mechanism_table[i]->name;
    if (mechanism == NULL && nginx_mechanism(directive->args[0].text) != NULL)
        return set_bad_value(apply, directive, 0, "%s", nginx_mechanism(directive->args[0].text));
    if (mechanism == NULL)
        return set_bad_name(apply, directive, 0, names, "an event mechanism of the build (see -V)");
    if (!mechanism->yields && !mechanism_available(mechanism))
        return set_bad_value(apply, directive, 0, "the kernel does not support the mechanism");
    apply->cycle->events.mechanism = mechanism;
    apply->use = &directive->args[0];
    return 0;
}

static int set_connections(struct apply *apply, const struct conf_directive *directive, void *field)
{
    return set_number_or_auto(apply, directive, field, &apply->cycle->events.connections_auto);
}

static int set_debug_connection(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct events_settings *events = field;
    struct address_block found[LOOKUP_ADDRESSES_MAX], *blocks;
    unsigned n;

    if (lookup_clients(apply, directive, found, &n) == -1)
        return -1;
    for (unsigned i = 0; i < n; i++) {
        blocks = apply_grow(apply, events->debug, events->debug_n, sizeof(*blocks));
        if (blocks == NULL)
            return -1;
        blocks[events->debug_n++] = found[i];
        events->debug = blocks;
    }
    return 0;
}

#define EVENTS(member) .offset = offsetof(struct events_settings, member)

const struct setting events_table[] = {
    { "accept_mutex", CONTEXT_EVENTS, 1, 1, .set = set_flag, EVENTS(accept_mutex),
        .initial = "on" },
    { "accept_mutex_delay", CONTEXT_EVENTS, 1, 1, .set = set_msec, EVENTS(accept_mutex_delay),
        .least_value = 1, .greatest_value = 3600 * 1000, .initial = "500ms" },
    { "accept_share", CONTEXT_EVENTS, 1, 1, .set = set_flag, EVENTS(accept_share),
        .initial = "on" },
    { "busy_poll", CONTEXT_EVENTS, 1, 1, .set = set_usec, EVENTS(busy_poll), .least_value = 0,
        .greatest_value = 100 * 1000, .initial = "off" },
    { "connections", CONTEXT_EVENTS, 1, 1, .set = set_connections, EVENTS(worker_connections),
        .least_value = 1, .greatest_value = 16 * 1024 * 1024, .initial = "512" },
    { "debug_connection", CONTEXT_EVENTS, 1, 1, .set = set_debug_connection, .repeats = true,
        .unset = "none" },
    { "multi_accept", CONTEXT_EVENTS, 1, 1, .set = set_flag, EVENTS(multi_accept),
        .initial = "off" },
    { "reclaim_idle", CONTEXT_EVENTS, 1, 1, .set = set_flag, EVENTS(reclaim_idle),
        .initial = "on" },
    { "stall_threshold", CONTEXT_EVENTS, 1, 1, .set = set_msec, EVENTS(stall_threshold),
        .least_value = 0, .greatest_value = 3600 * 1000, .initial = "500ms" },
    { "use", CONTEXT_EVENTS, 1, 1, .set = set_use, .unset = "the best available" },
    { "worker_aio_requests", CONTEXT_EVENTS, 1, 1, .set = set_number, EVENTS(worker_aio_requests),
        .least_value = 1, .greatest_value = 65536, .initial = "32" },
    { "worker_connections", CONTEXT_EVENTS, 1, 1, .set = set_connections,
        EVENTS(worker_connections), .least_value = 1, .greatest_value = 16 * 1024 * 1024,
        .initial = "512" },
    { .name = NULL },
};

/* The row of an option `k` of the mechanism `i` of the table. */
static struct setting option_setting(unsigned i, unsigned k)
{
    const struct mechanism_option *option = &mechanism_table[i]->options[k];

    return (struct setting) {
        .name = option->name,
        .at = CONTEXT_EVENTS,
        .least = 1,
        .most = 1,
        .set = set_number,
        .offset = offsetof(struct events_settings, all_values) +
                  i * sizeof(struct mechanism_values) + k * sizeof(int64_t),
        .least_value = option->least,
        .greatest_value = option->greatest,
    };
}

const struct setting *events_mechanism_table(struct apply *apply)
{
    const size_t most = (size_t)MECHANISMS_MAX * MECHANISM_OPTIONS;
    struct setting *table = apply_alloc(apply, (most + 1) * sizeof(*table));
    unsigned n = 0;

    if (table == NULL)
        return NULL;
    for (unsigned i = 0; mechanism_table[i] != NULL; i++) {
        assert(i < MECHANISMS_MAX);
        apply->cycle->events.all_values[i] = mechanism_defaults(mechanism_table[i]);
        for (unsigned k = 0; k < MECHANISM_OPTIONS; k++)
            if (mechanism_table[i]->options[k].name != NULL)
                table[n++] = option_setting(i, k);
    }
    return table;
}

int events_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct scope *scope = apply_alloc(apply, sizeof(*scope));

    (void)field;
    if (scope == NULL)
        return -1;
    apply_scope(apply, scope, CONTEXT_EVENTS, directive);
    apply_defaults(apply, scope, events_table);
    return 0;
}

static void choose_mechanism(struct events_settings *events, const struct mechanism *mechanism)
{
    assert(mechanism != NULL);
    events->mechanism = mechanism;
    for (int i = 0; mechanism_table[i] != NULL; i++)
        if (mechanism_table[i] == mechanism)
            events->mechanism_values = events->all_values[i];
}

bool events_yield(struct events_settings *events)
{
    const struct mechanism *mechanism = events->mechanism;

    if (!mechanism->yields || mechanism_available(mechanism))
        return false;
    events->refused = mechanism;
    events->refusal = errno;
    choose_mechanism(events, mechanism_find(NULL));
    return true;
}

void events_log(const struct cycle *cycle, struct log *log)
{
    const struct events_settings *events = &cycle->events;

    if (events->refused != NULL)
        log_write(log, LEVEL_NOTICE, events->refusal, "the kernel refuses \"%s\", \"%s\" is used",
            events->refused->name, events->mechanism->name);
}

/* Refuses a mechanism with requests unseen by filters, even where the kernel lacks it. */
static void check_filtered(struct apply *apply)
{
    const struct cycle *cycle = apply->cycle;

    if (cycle->events.mechanism->unfiltered && cycle->core.sandbox == SANDBOX_STRICT)
        report_error(apply->report, apply->use,
            "\"%s\" goes past the filter of system calls that \"sandbox strict\" demands: use "
            "another mechanism, or \"sandbox on\"",
            cycle->events.mechanism->name);
}

void events_finish(struct apply *apply)
{
    struct events_settings *events = &apply->cycle->events;
    uint32_t most;

    CHECK_KIND(apply, APPLY_KIND);
    choose_mechanism(events, events->mechanism != NULL ? events->mechanism : mechanism_find(NULL));
    check_filtered(apply);
    events_yield(events);
    most = events->mechanism->descriptors_max;
    if (most > 0 && !events->connections_auto && events->worker_connections > most)
        report_error(apply->report, apply->use,
            "\"%s\" serves at most %u descriptors, and %" PRId64
            " \"worker_connections\" are more: lower the number or use another mechanism",
            events->mechanism->name, most, events->worker_connections);
}

const char *events_without_debug(void)
{
    return DEBUG_BUILD ? NULL
                       : "debug lines of events are not in this build: it was configured without "
                         "--enable-debug";
}

void events_log_debug(const struct cycle *cycle, struct log *log)
{
    bool wanted = cycle->events.debug_n > 0;

    for (unsigned i = 0; i < core_target_n(&cycle->core); i++)
        wanted = wanted || core_target(&cycle->core, i)->level >= LEVEL_DEBUG;
    if (wanted && events_without_debug() != NULL)
        log_write(log, LEVEL_NOTICE, 0, "%s", events_without_debug());
}

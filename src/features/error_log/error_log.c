/* SPDX-License-Identifier: BSD-2-Clause */
/* Logs of stream {} and server {}, which take the lines of sessions in the place of the main
 * context's. Logs of one destination share the target, at any level: servers may be many, and
 * descriptors few. */
#include "base/check.h"
#include "features/features.h"
#include "settings/log_targets.h"

#include <string.h>

/* A directive as it was written. */
struct error_log {
    STAILQ_ENTRY(error_log) link;
    struct log_target target;
    const char *text; /* its destination */
};

/* The logs of a block, and of the inheriting servers. */
struct error_log_setting {
    STAILQ_HEAD(, error_log) logs;
    unsigned n;
    struct log_route *route; /* NULL: not yet asked for by a server */
};

/* A destination that some server has. */
struct error_destination {
    RB_ENTRY(error_destination) node;
    const char *text; /* the path, or what was written */
    enum log_format format;
    struct log_target *target;
};

/* The feature's struct of the configuration. */
struct error_log_conf {
    RB_HEAD(error_destinations, error_destination) destinations;
};

/* The feature's struct of a server. */
struct error_log_values {
    struct error_log_setting *logs; /* NULL: the main context's */
};

static int compare_destinations(
    const struct error_destination *a, const struct error_destination *b)
{
    return a->format != b->format ? (int)a->format - (int)b->format : strcmp(a->text, b->text);
}

RB_GENERATE_INTERNAL(error_destinations, error_destination, node, compare_destinations,
    static __attribute__((unused)))

static int error_log_set_server(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct error_log_setting **logs = field;
    struct error_log *log = apply_alloc(apply, sizeof(*log));

    if (log == NULL || log_targets_read(apply, directive, &log->target) == -1)
        return -1;
    log->text = log->target.path != NULL ? log->target.path : directive->args[0].text;
    if (*logs == NULL) {
        *logs = apply_alloc(apply, sizeof(**logs));
        if (*logs == NULL)
            return -1;
        STAILQ_INIT(&(*logs)->logs);
    }
    STAILQ_INSERT_TAIL(&(*logs)->logs, log, link);
    (*logs)->n++;
    return 0;
}

/* Finds the target of a file among the main context's. */
static struct log_target *find_main(struct core_settings *core, const struct log_target *target)
{
    for (unsigned i = 0; i < core->log_n && target->path != NULL; i++)
        if (core->logs[i].path != NULL && core->logs[i].format == target->format &&
            strcmp(core->logs[i].path, target->path) == 0)
            return &core->logs[i];
    return NULL;
}

/* Finds the target of the log's destination, or adds it; NULL after a report. */
static struct log_target *share_target(struct apply *apply, const struct error_log *log)
{
    struct error_log_conf *conf = feature_conf(apply, FEATURE_ERROR_LOG);
    struct error_destination *found, *destination = apply_alloc(apply, sizeof(*destination));

    if (destination == NULL)
        return NULL;
    *destination = (struct error_destination) { .text = log->text, .format = log->target.format };
    found = RB_INSERT(error_destinations, &conf->destinations, destination);
    if (found == NULL) {
        found = destination;
        found->target = find_main(&apply->cycle->core, &log->target);
        if (found->target == NULL)
            found->target = log_targets_add(apply, &log->target);
    }
    return found->target;
}

/* Returns the logs as targets; NULL after a report. */
static struct log_route *build_route(struct apply *apply, const struct error_log_setting *logs)
{
    struct core_settings *core = &apply->cycle->core;
    struct log_route *route =
        apply_alloc(apply, sizeof(*route) + logs->n * sizeof(route->targets[0]));
    const struct error_log *log;

    if (route == NULL)
        return NULL;
    STAILQ_FOREACH (log, &logs->logs, link) {
        struct log_target *target = share_target(apply, log);

        if (target == NULL)
            return NULL;
        route->targets[route->n].target = target;
        route->targets[route->n++].level = log->target.level;
        if (log->target.level > route->level)
            route->level = log->target.level;
    }
    assert(route->n == logs->n);
    if (route->level > core->routed_level)
        core->routed_level = route->level;
    return route;
}

static void error_log_finish_server(struct apply *apply, struct scope *server)
{
    const struct error_log_values *values = feature_values(server, FEATURE_ERROR_LOG);
    struct error_log_setting *logs = values->logs;

    assert(server->at == CONTEXT_SERVER);
    if (logs == NULL)
        return;
    if (logs->route == NULL)
        logs->route = build_route(apply, logs);
    server->server->route = logs->route;
}

static const struct setting rows[] = {
    { "error_log", CONTEXT_SERVERS, 1, 3, .set = error_log_set_server, .repeats = true,
        SETTING_FIELD(struct error_log_values, logs),
        .unset = "@localstatedir@/log/forkbeard/error.log error" },
    { .name = NULL },
};

const struct feature error_log_feature = {
    .name = "error_log",
    .rows = rows,
    .server_size = sizeof(struct error_log_values),
    .conf_size = sizeof(struct error_log_conf),
    .finish_server = error_log_finish_server,
};

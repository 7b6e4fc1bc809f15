/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the arguments of a check of servers, and adds the check to a group. Equal checks of a group
 * are merged, and run once for all servers that need the check. */
#include "features/health/health.h"

#include "features/features.h"
#include "settings/blocks.h"
#include "settings/calls.h"
#include "settings/parameter.h"
#include "settings/protocol.h"
#include "settings/rows.h"

#include <string.h>

#define INTERVAL_MS 5000
#define TIMEOUT_MS 5000
#define RUN_MOST 1000000 /* checks in a row */

static const struct parameter parameters[] = {
#define FIELD(member) offsetof(struct upstream_check, member)
    { "fails=", PARAMETER_COUNT, FIELD(fails), 1, RUN_MOST, NULL },
    { "interval=", PARAMETER_MSEC, FIELD(interval), 1, INT32_MAX, NULL },
    { "jitter=", PARAMETER_MSEC, FIELD(jitter), 0, INT32_MAX, NULL },
    { "mandatory", PARAMETER_FLAG, FIELD(mandatory), 0, 0, NULL },
    { "match=", PARAMETER_TEXT, FIELD(match_name), 0, 0, NULL },
    { "passes=", PARAMETER_COUNT, FIELD(passes), 1, RUN_MOST, NULL },
    { "persistent", PARAMETER_FLAG, FIELD(persistent), 0, 0, NULL },
    { "port=", PARAMETER_PORT, FIELD(port), 1, UINT16_MAX, NULL },
    { .name = NULL },
#undef FIELD
};

/* Reads an argument; returns NULL, or the text of a mistake. */
static const char *read_arg(struct upstream_check *check, const char *arg)
{
    const struct parameter *row = parameter_find(parameters, arg);

    if (strcmp(arg, "udp") == 0)
        return "servers of datagrams are not served";
    if (row == NULL)
        return "expected interval=, jitter=, fails=, passes=, port=, match=, \"mandatory\" or "
               "\"persistent\"";
    switch (parameter_read(row, arg, check)) {
    case NUMBER_OK:
        return NULL;
    case NUMBER_RANGE:
        return "the value is too small or too large";
    default:
        return "expected a value of the parameter's form";
    }
}

static int read_args(struct fb_conf *conf, const char *directive, const fb_health_options *options,
    struct upstream_check *check)
{
    for (uint32_t i = 0; i < options->arg_n; i++) {
        const char *wrong = read_arg(check, options->args[i]);
        const char *hint = rows_haproxy_hint(HAPROXY_CHECK, options->args[i]);

        if (wrong != NULL)
            return settings_report(conf, directive,
                "invalid value \"%s\" in \"%s\" directive: %s%s", options->args[i], directive,
                hint != NULL ? HAPROXY_WORD : "", hint != NULL ? hint : wrong);
    }
    if (check->persistent && !check->mandatory)
        return settings_report(
            conf, directive, "\"persistent\" in \"%s\" directive needs \"mandatory\"", directive);
    return 0;
}

const fb_health_check *health_check_of_conf(fb_conf *conf, const char *directive,
    const fb_upstream *upstream, const fb_health_options *options)
{
    struct apply *apply = conf->apply;
    struct health_conf *health = feature_conf(apply, FEATURE_HEALTH);
    struct fb_health_check *handle = apply_alloc(apply, sizeof(*handle));
    struct upstream_check *check = apply_alloc(apply, sizeof(*check));
    struct health_use *use = apply_alloc(apply, sizeof(*use));

    if (handle == NULL || check == NULL || use == NULL)
        return NULL;
    *check = (struct upstream_check) { .interval = INTERVAL_MS, .fails = 1, .passes = 1 };
    check->timeout = options->timeout < INT32_MAX ? (int64_t)options->timeout : INT32_MAX;
    if (check->timeout == 0)
        check->timeout = TIMEOUT_MS;
    if (read_args(conf, directive, options, check) == -1)
        return NULL;
    *use = (struct health_use) {
        .handle = handle,
        .upstream = upstream,
        .word = settings_place(conf, directive),
        .check = check,
    };
    STAILQ_INSERT_TAIL(&health->uses, use, link);
    return handle;
}

static bool checks_are_equal(const struct upstream_check *a, const struct upstream_check *b)
{
    return a->interval == b->interval && a->jitter == b->jitter && a->timeout == b->timeout &&
           a->fails == b->fails && a->passes == b->passes && a->port == b->port &&
           a->mandatory == b->mandatory && a->persistent == b->persistent && a->match == b->match;
}

/* Adds the check to the group, or finds an equal check there; NULL after a report. */
static const struct upstream_check *add_check(struct apply *apply, const struct health_use *use)
{
    struct upstream *upstream = use->upstream->upstream;
    struct upstream_check **last = &upstream->checks;
    unsigned n = 0;

    for (; *last != NULL; last = &(*last)->next, n++)
        if (checks_are_equal(*last, use->check))
            return *last;
    if (n == HEALTH_CHECKS_MOST) {
        report_error(apply->report, use->word,
            "upstream \"%s\" has more than %d different health checks", upstream->name,
            HEALTH_CHECKS_MOST);
        return NULL;
    }
    use->check->index = n;
    *last = use->check;
    return use->check;
}

/* Looks up the needs of the check; -1 after a report. */
static int find_check_parts(struct apply *apply, const struct health_use *use)
{
    const struct health_conf *conf = feature_conf(apply, FEATURE_HEALTH);
    const struct upstream *upstream = use->upstream->upstream;
    struct upstream_check *check = use->check;
    struct nearest near = { .word = check->match_name };
    const char *name = use->word->text;
    const struct match *match;

    if (upstream == NULL || upstream->is_single)
        return report_error(apply->report, use->word,
            "\"%s\" needs a server given by the name of an \"upstream\" block", name);
    if (upstream->zone == NULL)
        return report_error(apply->report, use->word,
            "\"%s\" needs shared memory: upstream \"%s\" has no \"zone\"", name, upstream->name);
    if (check->match_name == NULL)
        return 0;
    check->match = match_find(&conf->matches, check->match_name);
    if (check->match != NULL)
        return 0;
    STAILQ_FOREACH (match, &conf->matches, link)
        nearest_try(&near, match->name);
    return report_error(apply->report, use->word,
        "there is no \"match\" block of the name \"%s\"%s%s%s", check->match_name,
        near.found != NULL ? ", did you mean \"" : "", near.found != NULL ? near.found : "",
        near.found != NULL ? "\"?" : "");
}

static void health_bind(struct apply *apply, struct scope *stream)
{
    const struct health_conf *conf = feature_conf(apply, FEATURE_HEALTH);
    struct health_use *use;
    struct upstream_server *server;

    (void)stream;
    if (apply->report->error_n > 0)
        return;
    STAILQ_FOREACH (use, &conf->uses, link) {
        if (find_check_parts(apply, use) == -1)
            continue;
        use->handle->upstream = use->upstream->upstream;
        use->handle->check = add_check(apply, use);
        STAILQ_FOREACH (server, &use->handle->upstream->servers, link)
            server->is_checked = true;
        if (use->check->port != 0)
            needs_add_port(apply, use->check->port);
    }
}

static void health_conf_begin(struct apply *apply)
{
    struct health_conf *conf = feature_conf(apply, FEATURE_HEALTH);

    STAILQ_INIT(&conf->matches);
    STAILQ_INIT(&conf->uses);
}

static const struct setting rows[] = {
    { "match", CONTEXT_STREAM, 1, 1, .set = match_set, .block = true, .repeats = true,
        .unset = "none" },
    { .name = NULL },
};

const struct feature health_feature = {
    .name = "health",
    .rows = rows,
    .conf_size = sizeof(struct health_conf),
    .begin = health_conf_begin,
    .bind = health_bind,
};

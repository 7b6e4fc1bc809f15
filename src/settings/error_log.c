/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of the error log. Only defines the targets; process/logs.c opens them. */
#include "settings/error_log.h"
#include "base/check.h"
#include "base/number.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/log_destination.h"
#include "settings/set_value.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define EXPECTED "a level: debug, info, notice, warn, error, crit, alert or emerg"

static const char *const levels[] = { "debug", "info", "notice", "warn", "error", "crit", "alert",
    "emerg", NULL };

/* Returns the value of the parameter "NAME=value"; NULL for a different parameter. */
static const char *value_of(const char *parameter, const char *name)
{
    size_t n = strlen(name);

    return strncmp(parameter, name, n) == 0 && parameter[n] == '=' ? parameter + n + 1 : NULL;
}

static int add_target(struct apply *apply, const struct log_target *target)
{
    struct core_settings *core = &apply->cycle->core;
    struct log_target *logs = apply_grow(apply, core->logs, core->log_n, sizeof(*logs));

    if (logs == NULL)
        return -1;
    logs[core->log_n++] = *target;
    core->logs = logs;
    return 0;
}

int error_log_read(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target)
{
    unsigned n = directive->arg_n;

    *target = (struct log_target) { .fd = -1, .level = LEVEL_ERROR };
    if (n > 1 && strcmp(directive->args[n - 1].text, "json") == 0) {
        target->format = LOG_FORMAT_JSON;
        n--;
    }
    if (n > 1) {
        int level = log_level_parse(directive->args[1].text);

        if (level == -1)
            return set_bad_name(apply, directive, 1, levels, EXPECTED);
        target->level = (enum log_level)level;
    }
    if (n > 2)
        return set_bad_value(apply, directive, 2, "expected \"json\"");
    if (log_destination_set(apply, directive, target) == -1)
        return -1;
    if (target->path != NULL)
        paths_add(apply, "error_log", PATH_LOG, target->path, &directive->args[0]);
    return 0;
}

int error_log_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct log_target target;

    (void)field;
    return error_log_read(apply, directive, &target) == -1 ? -1 : add_target(apply, &target);
}

int error_log_set_rate_limit(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;

    if (directive->arg_n == 1 && strcmp(directive->args[0].text, "off") == 0) {
        core->log_burst = 0;
        return 0;
    }
    for (unsigned i = 0; i < directive->arg_n; i++) {
        const char *text = directive->args[i].text;
        const char *burst = value_of(text, "burst"), *interval = value_of(text, "interval");

        if (burst != NULL) {
            if (number_parse(burst, 1, INT_MAX, &core->log_burst) != NUMBER_OK)
                return set_bad_value(
                    apply, directive, i, "expected a number between 1 and %d", INT_MAX);
        } else if (interval == NULL) {
            return set_bad_value(
                apply, directive, i, "expected burst=number, interval=time, or \"off\" alone");
        } else if (number_parse_msec(interval, 1, 86400 * 1000, &core->log_interval) != NUMBER_OK) {
            return set_bad_value(apply, directive, i, "expected a time between 1ms and 1d");
        }
    }
    return 0;
}

void error_log_finish(struct apply *apply)
{
    struct log_target target = { .fd = -1, .level = LEVEL_ERROR };
    const char *path = apply->options->error_log;

    assert(path != NULL);
    if (apply->cycle->core.log_n > 0)
        return;
    if (strcmp(path, "stderr") == 0)
        target.fd = STDERR_FILENO;
    else
        target.path = apply_strdup(apply, path);
    add_target(apply, &target);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `error_log`, and destinations of all logs: a path, "stderr", or "syslog:" and parameters.
 * Opens nothing: configuration/logs.c does. */
#include "settings/log_targets.h"

#include "base/check.h"
#include "net/address_parse.h"
#include "settings/apply.h"
#include "settings/blocks.h"
#include "settings/lookup.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SYSLOG_PORT 514
#define TAG_MAX 32
#define EXPECTED "a level: debug, info, notice, warn, error, crit, alert or emerg"

static const char *const levels[] = { "debug", "info", "notice", "warn", "error", "crit", "alert",
    "emerg", NULL };

/* Names of syslog facilities, at their numbers. */
static const char *const facilities[] = { "kern", "user", "mail", "daemon", "auth", "intern", "lpr",
    "news", "uucp", "clock", "authpriv", "ftp", "ntp", "audit", "alert", "cron", "local0", "local1",
    "local2", "local3", "local4", "local5", "local6", "local7", NULL };

/* The setters of parameters return NULL, or what is wrong with the value. */

/* Takes the transport off the address. */
static const char *set_transport(struct syslog_server *syslog, const char **value)
{
    static const char tcp[] = "tcp://", local[] = "unix:";

    if (strncmp(*value, tcp, strlen(tcp)) == 0) {
        *value += strlen(tcp);
        syslog->by_tcp = true;
    }
    if (strncmp(*value, local, strlen(local)) != 0)
        return strstr(*value, "://") == NULL ? NULL
                                             : "expected an address, or tcp:// and an address";
    return syslog->by_tcp ? "a unix domain socket takes datagrams, leave \"tcp://\" out" : NULL;
}

static const char *set_log_server(
    struct apply *apply, struct syslog_server *syslog, const char *value)
{
    char name[ADDRESS_TEXT];
    struct address *address = apply_alloc(apply, sizeof(*address));
    const char *wrong;

    if (syslog->address != NULL)
        return "there is more than one \"server\"";
    if (address == NULL)
        return "there is no memory";
    wrong = set_transport(syslog, &value);
    if (wrong != NULL)
        return wrong;
    value = apply_address(apply, value);
    if (value == NULL)
        return "there is no memory";
    wrong = lookup_host(apply, value, SYSLOG_PORT, address);
    if (wrong != NULL)
        return wrong;
    syslog->address = &address->any;
    syslog->address_n = address->length;
    syslog->name = arena_printf(apply->cycle->arena, "%s%s", syslog->by_tcp ? "tcp://" : "",
        address_format(address, true, name));
    return syslog->name == NULL ? "there is no memory" : NULL;
}

static const char *set_facility(struct syslog_server *syslog, const char *value)
{
    for (unsigned i = 0; facilities[i] != NULL; i++)
        if (strcmp(facilities[i], value) == 0) {
            syslog->facility = i;
            return NULL;
        }
    return "there is no such facility";
}

static const char *set_tag(struct syslog_server *syslog, const char *value)
{
    size_t n = strlen(value);

    if (n == 0 || n > TAG_MAX)
        return "a tag has 1 to 32 characters";
    for (const char *c = value; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return "a tag consists of letters, digits and \"_\"";
    syslog->tag = value;
    return NULL;
}

/* Lines of the error log carry their own. */
static const char *set_severity(struct syslog_server *syslog, const char *value)
{
    int level = log_level_parse(value);

    if (level == -1)
        return "there is no such severity";
    syslog->severity = (enum log_level)level;
    return NULL;
}

static const char *set_format(struct syslog_server *syslog, const char *value)
{
    if (strcmp(value, "rfc3164") == 0)
        syslog->format = SYSLOG_RFC3164;
    else if (strcmp(value, "rfc5424") == 0)
        syslog->format = SYSLOG_RFC5424;
    else
        return "expected rfc3164 or rfc5424";
    return NULL;
}

static const char *set_target_parameter(
    struct apply *apply, struct syslog_server *syslog, const char *text)
{
    const char *value;

    if ((value = parameter_value(text, "server")) != NULL)
        return set_log_server(apply, syslog, value);
    if ((value = parameter_value(text, "facility")) != NULL)
        return set_facility(syslog, value);
    if ((value = parameter_value(text, "tag")) != NULL)
        return set_tag(syslog, value);
    if ((value = parameter_value(text, "severity")) != NULL)
        return set_severity(syslog, value);
    if ((value = parameter_value(text, "format")) != NULL)
        return set_format(syslog, value);
    if (strcmp(text, "nohostname") != 0)
        return "expected server=, facility=, tag=, severity=, format= or nohostname";
    syslog->host = "";
    return NULL;
}

static const char *host_name(struct apply *apply)
{
    char name[HOST_NAME_MAX + 1];

    if (gethostname(name, sizeof(name)) == -1)
        return "";
    name[sizeof(name) - 1] = '\0';
    return apply_taken(apply, arena_printf(apply->cycle->arena, "%s ", name));
}

/* Reads the parameters after "syslog:"; NULL after a report. */
static const struct syslog_server *parse_syslog(
    struct apply *apply, const struct conf_directive *directive, const char *text)
{
    struct syslog_server *syslog = apply_alloc(apply, sizeof(*syslog));
    char *copy = syslog == NULL ? NULL : apply_strdup(apply, text), *parameter;

    if (copy == NULL)
        return NULL;
    *syslog = (struct syslog_server) {
        .tag = "forkbeard", .facility = 23 /* local7 */, .severity = LEVEL_INFO
    };
    while ((parameter = strsep(&copy, ",")) != NULL) {
        const char *wrong = set_target_parameter(apply, syslog, parameter);

        if (wrong != NULL) {
            set_bad_value(apply, directive, 0, "\"%s\": %s", parameter, wrong);
            if (address_is_unresolved(wrong))
                report_note_temporary(apply->report);
            return NULL;
        }
    }
    if (syslog->format == SYSLOG_ANY)
        syslog->format = syslog->by_tcp ? SYSLOG_RFC5424 : SYSLOG_RFC3164;
    if (syslog->host == NULL)
        syslog->host = host_name(apply);
    if (syslog->address == NULL)
        set_bad_value(apply, directive, 0, "there is no \"server\"");
    return syslog->address == NULL || syslog->host == NULL ? NULL : syslog;
}

int log_targets_find(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target)
{
    const char *text = directive->args[0].text;

    if (text[0] == '\0')
        return set_bad_value(apply, directive, 0, "expected a path, \"stderr\" or \"syslog:\"");
    if (strncmp(text, "memory:", 7) == 0)
        return set_bad_value(
            apply, directive, 0, "only files, \"stderr\" and \"syslog:\" are supported");
    if (strcmp(text, "stderr") == 0) {
        target->fd = STDERR_FILENO;
        return 0;
    }
    if (strncmp(text, "syslog:", 7) == 0) {
        target->syslog = parse_syslog(apply, directive, text + 7);
        return target->syslog == NULL ? -1 : 0;
    }
    target->path = apply_path(apply, text);
    return target->path == NULL ? -1 : 0;
}

struct log_target *log_targets_add(struct apply *apply, const struct log_target *target)
{
    struct core_settings *core = &apply->cycle->core;
    struct log_target *copy = apply_alloc(apply, sizeof(*copy));
    struct log_target **all = apply_grow(apply, core->other_logs, core->other_log_n, sizeof(*all));

    if (copy == NULL || all == NULL)
        return NULL;
    *copy = *target;
    all[core->other_log_n++] = copy;
    core->other_logs = all;
    return copy;
}

/* ---- The directives of the error log ---- */

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

int log_targets_read(
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
    if (log_targets_find(apply, directive, target) == -1)
        return -1;
    if (target->path != NULL)
        paths_add(apply, "error_log", PATH_LOG, target->path, &directive->args[0]);
    return 0;
}

int log_targets_set(struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct log_target target;

    (void)field;
    return log_targets_read(apply, directive, &target) == -1 ? -1 : add_target(apply, &target);
}

static const struct parameter rate_parameters[] = {
    { "burst=", PARAMETER_NUMBER, offsetof(struct core_settings, log_burst), 1, INT32_MAX,
        "a number between 1 and 2147483647" },
    { "interval=", PARAMETER_MSEC, offsetof(struct core_settings, log_interval), 1, 86400 * 1000,
        "a time between 1ms and 1d" },
    { .name = NULL },
};

int log_targets_set_rate_limit(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct core_settings *core = field;

    if (directive->arg_n == 1 && strcmp(directive->args[0].text, "off") == 0) {
        core->log_burst = 0;
        return 0;
    }
    for (unsigned i = 0; i < directive->arg_n; i++)
        if (parameter_set(apply, directive, i, rate_parameters,
                "burst=number, interval=time, or \"off\" alone", core) == -1)
            return -1;
    return 0;
}

void log_targets_finish(struct apply *apply)
{
    struct log_target target = { .fd = -1, .level = LEVEL_ERROR };
    const char *path = apply->options->error_log;

    assert(path != NULL);
    if (apply->cycle->core.log_n > 0)
        return;
    if (strcmp(path, "stderr") == 0)
        target.fd = STDERR_FILENO;
    else if ((target.path = apply_strdup(apply, path)) != NULL)
        paths_add_default(apply, "error_log", PATH_LOG, target.path);
    add_target(apply, &target);
}

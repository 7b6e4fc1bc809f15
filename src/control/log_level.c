/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a request for a level of the error logs, which the host sets, and replies with the level in
 * force. A request with a mistake changes nothing. */
#include "control/log_level.h"

#include "base/number.h"
#include "control/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TIME_LEAST_MS 1000
#define TIME_MOST_MS (INT64_C(7) * 86400 * 1000)

/* A requested level; without a level the request only shows. */
struct log_request {
    char level[16], time[32];
    bool has_level, has_time;
    uint32_t override;
    int64_t ms; /* 0: without an end */
};

/* Reads the request; false, with the reason: it is refused. */
static bool read_log_request(
    struct json_value request, struct log_request *wanted, char *why, size_t size)
{
    int level;

    *wanted = (struct log_request) { .has_level = json_member(request, "level").text != NULL,
        .has_time = json_member(request, "for").text != NULL };
    json_text(json_member(request, "level"), wanted->level, sizeof(wanted->level));
    json_text(json_member(request, "for"), wanted->time, sizeof(wanted->time));
    level = log_level_parse(wanted->level);
    if (level != -1)
        wanted->override = LOG_OVERRIDE(level);
    if (wanted->has_level && level == -1 && strcmp(wanted->level, "default") != 0)
        snprintf(why, size,
            "unknown level \"%s\", expected debug, info, notice, warn, error, crit, alert, emerg "
            "or "
            "default",
            wanted->level);
    else if (wanted->has_time && level == -1)
        snprintf(why, size, "only a level is set \"for\" a time");
    else if (wanted->has_time &&
             number_parse_msec(wanted->time, TIME_LEAST_MS, TIME_MOST_MS, &wanted->ms) != NUMBER_OK)
        snprintf(why, size, "\"for %s\": expected a time from 1s to 7d, as 10m", wanted->time);
    else
        return true;
    return false;
}

/* Has the host set the level; returns what else to say, or NULL. */
static const char *set_requested_level(
    const struct control_client *client, const struct log_request *wanted)
{
    const struct control *control = client->control;
    const char *note =
        wanted->override == LOG_OVERRIDE(LEVEL_DEBUG) ? events_without_debug() : NULL;
    char text[128];

    assert(wanted->has_level && (wanted->ms == 0 || wanted->override != 0));
    snprintf(text, sizeof(text), "\"log %s%s%s\" received from %d by the control socket",
        wanted->level, wanted->has_time ? " for " : "", wanted->time, (int)client->pid);
    control->ops->set_log_level(control->host, wanted->override, wanted->ms, text);
    if (note != NULL)
        log_write(control->pool->log, LEVEL_NOTICE, 0, "%s", note);
    return note;
}

void control_log_level_handle(struct control_client *client, struct json_value request)
{
    const struct pool *pool = client->control->pool;
    struct log_request wanted;
    const char *note = NULL;
    char why[160];
    struct json json;

    CHECK_KIND(client, CONTROL_CLIENT_KIND);
    if (!read_log_request(request, &wanted, why, sizeof(why))) {
        control_reply_error(client, why, false);
        return;
    }
    if (wanted.has_level)
        note = set_requested_level(client, &wanted);
    control_reply_begin(&json, true);
    if (pool->log_level.override != 0)
        control_status_log_level(pool, &json);
    else
        json_null(&json, "log_level");
    if (note != NULL)
        json_string(&json, "note", note);
    control_reply_end(&json, client, false);
}

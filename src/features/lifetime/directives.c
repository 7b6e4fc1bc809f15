/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `session_lifetime` and `receive_min_rate`: bounds of what a client may do that no traffic
 * extends. Each is begun by a handler of the servers that have it. */
#include "features/lifetime/lifetime.h"

#include "base/check.h"
#include "base/number.h"
#include "features/features.h"
#include "session/receive.h"
#include "session/use.h"
#include "settings/set_value.h"
#include "settings/template.h"

#include <string.h>

#define LIFETIME_GRACE_MS 30000
#define RATE_GRACE_MS 10000
#define TIME_EXPECTED "expected a time such as 500ms, 30s or 1h 30m"

/* Returns the value of the parameter "NAME=value"; NULL if it is another parameter. */
static const char *value_of(const char *parameter, const char *name)
{
    size_t n = strlen(name);

    return strncmp(parameter, name, n) == 0 && parameter[n] == '=' ? parameter + n + 1 : NULL;
}

/* Sets the time of an argument; -1 after a report. */
static int set_time(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *text, int64_t *ms)
{
    if (number_parse_msec(text, 0, INT64_MAX, ms) != NUMBER_OK)
        return set_bad_value(apply, directive, arg, TIME_EXPECTED);
    return 0;
}

static bool is_off(const struct conf_directive *directive)
{
    return directive->arg_n == 1 && strcmp(directive->args[0].text, "off") == 0;
}

static int lifetime_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field)
{
    struct lifetime_setting *lifetime = field;

    (void)setting;
    *lifetime = (struct lifetime_setting) { .time = 0 };
    if (is_off(directive))
        return 0;
    if (set_time(apply, directive, 0, directive->args[0].text, &lifetime->time) == -1)
        return -1;
    lifetime->jitter = lifetime->time / 10;
    lifetime->grace = LIFETIME_GRACE_MS;
    for (unsigned i = 1; i < directive->arg_n; i++) {
        const char *text = directive->args[i].text;
        const char *jitter = value_of(text, "jitter"), *grace = value_of(text, "grace");

        if (jitter == NULL && grace == NULL)
            return set_bad_value(apply, directive, i, "expected jitter=time or grace=time");
        if (set_time(apply, directive, i, jitter != NULL ? jitter : grace,
                jitter != NULL ? &lifetime->jitter : &lifetime->grace) == -1)
            return -1;
        if (lifetime->jitter > lifetime->time)
            return set_bad_value(apply, directive, i, "it is longer than the lifetime");
    }
    return 0;
}

static int lifetime_set_rate(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field)
{
    struct rate_setting *rate = field;

    (void)setting;
    *rate = (struct rate_setting) { .grace = RATE_GRACE_MS };
    if (is_off(directive))
        return 0;
    if (number_parse_size(directive->args[0].text, 0, INT64_MAX, &rate->bytes) != NUMBER_OK)
        return set_bad_value(apply, directive, 0, "expected a size such as 512, 16k or 1m");
    for (unsigned i = 1; i < directive->arg_n; i++) {
        const char *grace = value_of(directive->args[i].text, "grace");

        if (grace == NULL)
            return set_bad_value(apply, directive, i, "expected grace=time");
        if (set_time(apply, directive, i, grace, &rate->grace) == -1)
            return -1;
    }
    return 0;
}

static void lifetime_finish(struct apply *apply, struct scope *server)
{
    const struct lifetime_values *values = feature_values(server, FEATURE_LIFETIME);

    if (values->lifetime.time > 0)
        phase_add(apply, server->server, PHASE_ACCESS, lifetime_begin, &values->lifetime);
    if (values->receive_min_rate.bytes > 0)
        phase_add(apply, server->server, PHASE_ACCESS, session_receive_begin_rate,
            &values->receive_min_rate);
}

static const struct setting rows[] = {
    { "receive_min_rate", CONTEXT_STREAM | CONTEXT_SERVER, 1, 2, .set = lifetime_set_rate,
        .offset = offsetof(struct lifetime_values, receive_min_rate),
        .size = sizeof(struct rate_setting), .initial = "off" },
    { "session_lifetime", CONTEXT_STREAM | CONTEXT_SERVER, 1, 3, .set = lifetime_set,
        .offset = offsetof(struct lifetime_values, lifetime),
        .size = sizeof(struct lifetime_setting), .initial = "off" },
    { .name = NULL },
};

const struct feature lifetime_feature = {
    .name = "lifetime",
    .rows = rows,
    .server_size = sizeof(struct lifetime_values),
    .finish_server = lifetime_finish,
};

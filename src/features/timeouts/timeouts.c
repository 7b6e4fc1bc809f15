/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of time and bytes for a session: only sets the values, which session/ applies. */
#include "features/features.h"
#include "settings/set_value.h"

#include <string.h>

/* "off" is an unreachable limit; 0 stands for the protocol's limit. */
static int set_output_limit(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    if (strcmp(directive->args[0].text, "off") == 0) {
        *(int64_t *)field = INT64_MAX;
        return 0;
    }
    return set_size(apply, directive, field);
}

static const struct setting rows[] = {
    { "first_byte_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct server_settings, first_byte_timeout), .initial = "60s" },
    { "idle_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct server_settings, idle_timeout), .initial = "10m" },
    { "input_limit", CONTEXT_SERVERS, 1, 1, .set = set_size,
        SETTING_FIELD(struct server_settings, input_limit), .least_value = 1,
        .greatest_value = INT64_MAX, .unset = "set by the protocol" },
    { "output_limit", CONTEXT_SERVERS, 1, 1, .set = set_output_limit,
        SETTING_FIELD(struct server_settings, output_limit), .least_value = 64 * 1024,
        .greatest_value = INT64_MAX, .unset = "set by the protocol" },
    { "receive_timeout", CONTEXT_SERVERS, 1, 1, .set = set_msec,
        SETTING_FIELD(struct server_settings, receive_timeout), .initial = "off" },
    { "tcp_nodelay", CONTEXT_SERVERS, 1, 1, .set = set_flag,
        SETTING_FIELD(struct server_settings, tcp_nodelay), .initial = "on" },
    { .name = NULL },
};

const struct feature timeouts_feature = {
    .name = "timeouts",
    .rows = rows,
};

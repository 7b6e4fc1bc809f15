/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a session of the simulated kernel with the variables and handlers of a configuration. */
#include "features/defined.h"

#include "features/features.h"
#include "features/set/set.h"
#include "session/conn.h"
#include "settings/loading.h"
#include "support/fixture.h"
#include "text/template.h"

#include <string.h>

/* The rows' texts are `set` commands of the server; the test runs each itself. */
struct look {
    const struct set_command *commands;
    const char *const *rows;
    unsigned n;
};

static unsigned look_at(struct fb_conn *conn, const void *arg)
{
    const struct look *look = arg;
    const struct set_command *command = look->commands;

    for (unsigned i = 0; i < look->n; i++, command = command->next) {
        const char *expected = look->rows[2 * i + 1];
        struct value value;

        while (strcmp(command->variable->name, "looked") != 0)
            command = command->next;
        ck_assert_int_eq(template_value(conn, command->value, &value), 0);
        ck_assert_msg(value.n == strlen(expected) && memcmp(value.p, expected, value.n) == 0,
            "%s is \"%.*s\", not \"%s\"", look->rows[2 * i], (int)value.n, value.p, expected);
    }
    return 0;
}

static unsigned write_conf(char *text, size_t size, const char *stream, const char *const *rows)
{
    size_t n = (size_t)snprintf(text, size, "events { } stream { %s ", stream);
    unsigned row_n = 0;

    for (; rows[2 * row_n] != NULL; row_n++)
        n += (size_t)snprintf(text + n, size - n, "set $looked \"%s\"; ", rows[2 * row_n]);
    n += (size_t)snprintf(text + n, size - n, "listen 1; } }");
    ck_assert_uint_lt(n, size);
    return row_n;
}

void defined_expect(const char *stream, const char *const *rows, const char *logged)
{
    char text[8192];
    struct look look = { .rows = rows };
    struct phase_handler last = { .phase = PHASE_ACCESS, .run = look_at, .arg = &look };
    struct phase_handler **at;
    const struct server *server;
    struct loading loading;
    struct fixture *fixture;

    loading_begin(&loading);
    look.n = write_conf(text, sizeof(text), stream, rows);
    accept_text(&loading, text, "");
    server = STAILQ_FIRST(&loading.cycle->stream.servers);
    look.commands = ((struct set_commands *)server_feature(server, FEATURE_SET))->first;
    fixture = fixture_start_stream(2);
    fixture->server.server.variables = server->variables;
    fixture->server.server.before = server->before;
    at = &fixture->server.server.before;
    while (*at != NULL)
        at = &(*at)->next;
    *at = &last;
    scripted_connect(fixture);
    ck_assert_str_eq(fixture_logged(fixture), logged);
    scripted_end_sessions(fixture);
    fixture_stop(fixture);
    loading_end(&loading);
}

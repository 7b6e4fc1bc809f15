/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets a server's values by the rows of the features. */
#include "support/server_defaults.h"

#include "support/test.h"
#include "text/variable.h"

#include <string.h>

void server_defaults_of_table(struct cycle *cycle, struct server_settings *settings,
    void **features, unsigned at, const struct setting *table)
{
    struct conf_report report;
    struct scope scope = {
        .kind = SCOPE_KIND, .at = at, .settings = settings, .features = features
    };
    struct apply apply = { .kind = APPLY_KIND, .cycle = cycle, .report = &report };

    report_init(&report, NULL);
    STAILQ_INIT(&scope.seen);
    apply_defaults(&apply, &scope, table);
    ck_assert_uint_eq(report.error_n, 0);
}

struct arena *server_defaults(struct server *server)
{
    struct cycle cycle = { .arena = arena_create() };
    struct cycle_options options = { .features = features_all };
    struct conf_report report;
    struct apply apply = {
        .kind = APPLY_KIND, .cycle = &cycle, .report = &report, .options = &options
    };
    const struct setting *rows;

    ck_assert_ptr_nonnull(cycle.arena);
    report_init(&report, cycle.arena);
    rows = feature_rows(&apply);
    server->features = feature_make_structs(&apply, offsetof(struct feature, server_size));
    ck_assert(rows != NULL && server->features != NULL);
    memset(&server->settings, 0, sizeof(server->settings));
    server_defaults_of_table(&cycle, &server->settings, server->features, CONTEXT_SERVER, rows);
    return cycle.arena;
}

const struct variable_row *const *variable_tables(void)
{
    static const struct variable_row *tables[FEATURES + 2];
    unsigned n = 0;

    tables[n++] = variables_builtin;
    for (unsigned i = 0; i < FEATURES; i++)
        if (features_all[i]->variables != NULL)
            tables[n++] = features_all[i]->variables;
    return tables;
}

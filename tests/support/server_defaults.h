/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that no configuration has made. */
#pragma once

#include "features/features.h"

/* Sets the defaults of a context's rows, in `settings` and `features` for rows of servers. */
void server_defaults_of_table(struct cycle *cycle, struct server_settings *settings,
    void **features, unsigned at, const struct setting *table);
/* Gives the server the defaults of a configuration without directives, and the features their
 * structs. Returns the memory of the structs, destroyed by the caller. */
struct arena *server_defaults(struct server *server);

/* Returns the list of the variables that are there without a definition. */
const struct variable_row *const *variable_tables(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that no configuration has made. */
#pragma once

#include "features/features.h"

/* Gives the server the defaults of a configuration without directives, and the features their
 * structs. Returns the memory of the structs, destroyed by the caller. */
struct arena *server_defaults(struct server *server);

/* Returns the list of the variables that are there without a definition. */
const struct variable_row *const *variable_tables(void);

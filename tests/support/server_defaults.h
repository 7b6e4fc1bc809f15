/* SPDX-License-Identifier: BSD-2-Clause */
/* Servers that no configuration has made. */
#pragma once

#include "features/features.h"

/* Gives the server the values that a configuration without directives sets, and the features their
 * structs. Returns the memory of these, which the caller destroys. */
struct arena *server_defaults(struct server *server);

/* Returns the list of the variables that are there without a definition. */
const struct variable_row *const *variable_tables(void);

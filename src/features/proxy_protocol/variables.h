/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of the values in a PROXY header. */
#pragma once

#include "text/variable.h"

extern const struct variable_row variables_proxy[];
/* Whether the variable is a row of the table; and whether a variable of the name exists: the name
 * may contain the number of a type. */
bool variables_proxy_has(const struct variable *variable);
bool variables_proxy_knows(const struct variable *variable);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of what is known by a PROXY header. */
#pragma once

#include "text/variable.h"

extern const struct variable_row variables_proxy[];
/* Whether the variable is one of the table; and whether there is such a variable: its name may have
 * the number of a type. */
bool variables_proxy_has(const struct variable *variable);
bool variables_proxy_knows(const struct variable *variable);

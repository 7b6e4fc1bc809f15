/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives of nginx that this daemon does not have. For these a message says that they are not
 * supported, instead of suggesting a similar name. A row of a directive table with the same name
 * takes precedence. */
#pragma once

#include <stdbool.h>

bool nginx_only(const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives that people bring along from nginx and that this daemon does not have, so that a
 * message says so instead of suggesting a similar name. Rows of the same name go first. */
#pragma once

#include <stdbool.h>

bool nginx_only(const char *name);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Defaults of directives in the manual. */
#pragma once

/* Returns in `initial` the default of the directive `name` whose contexts begin with the first of
 * `at`; NULL if the manual shows none. */
const char *manual_default(const char *name, unsigned at, char initial[256]);

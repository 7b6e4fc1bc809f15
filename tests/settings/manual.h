/* SPDX-License-Identifier: BSD-2-Clause */
/* Defaults of directives in the manual. */
#pragma once

/* Returns the default of the directive of that name whose contexts begin with the first of these,
 * in `initial`; NULL where the manual shows none. */
const char *manual_default(const char *name, unsigned at, char initial[256]);

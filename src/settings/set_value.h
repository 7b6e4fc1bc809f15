/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of one plain value, which rows of all tables share: the field is an int64_t, or a
 * const char *. A value that is refused is reported, and the field then holds anything. */
#pragma once

#include "base/compiler.h"
#include "settings/setting.h"

SETTER(set_flag);
SETTER(set_number);
SETTER(set_size);
SETTER(set_size_or_off); /* takes "off", too, where the least value is 0 */
SETTER(set_msec);        /* takes "off", too, where the least value is 0 */
SETTER(set_usec);        /* takes "off", too */
SETTER(set_string);
SETTER(set_path);
SETTER(set_nothing);
SETTER(set_include);
/* Sets the place that the argument has among the names, whose letters may be of either case, as in
 * nginx; of names that differ in that alone it is the one that is written so. */
int set_choice(struct apply *apply, const struct conf_directive *directive,
    const char *const *names, const char *expected, void *field);

/* Reports `invalid value "x" in "name" directive: TEXT`. Returns -1. */
int set_bad_value(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *format, ...) PRINTF_FORMAT(4, 5);
/* Reports the same, and suggests the nearest of the names. */
int set_bad_name(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected);

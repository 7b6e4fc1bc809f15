/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of a plain value, an int64_t or a const char *, for rows of all tables. After the report
 * of a bad value the field holds anything. */
#pragma once

#include "base/compiler.h"
#include "settings/setting.h"

int set_flag(struct apply *apply, const struct conf_directive *directive, void *field);
int set_number(struct apply *apply, const struct conf_directive *directive, void *field);
int set_size(struct apply *apply, const struct conf_directive *directive, void *field);
/* Take "off" as well: a size or time whose least value is 0. */
int set_size_or_off(struct apply *apply, const struct conf_directive *directive, void *field);
int set_msec(struct apply *apply, const struct conf_directive *directive, void *field);
int set_usec(struct apply *apply, const struct conf_directive *directive, void *field);
/* Leaves the field for "auto". */
int set_number_or_auto(
    struct apply *apply, const struct conf_directive *directive, int64_t *field, bool *is_auto);
int set_string(struct apply *apply, const struct conf_directive *directive, void *field);
int set_path(struct apply *apply, const struct conf_directive *directive, void *field);
int set_nothing(struct apply *apply, const struct conf_directive *directive, void *field);
/* Sets the index of the argument among the names (or the row's), in letters of either case; the
 * exact spelling wins. `expected` NULL: lists the names. */
int set_choice(struct apply *apply, const struct conf_directive *directive,
    const char *const *names, const char *expected, void *field);
int set_name(struct apply *apply, const struct conf_directive *directive, void *field);
/* Reports `invalid value "x" in "name" directive: TEXT`. Returns -1. */
int set_bad_value(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *format, ...) PRINTF_FORMAT(4, 5);
/* Reports the same, and suggests the nearest of the names. */
int set_bad_name(struct apply *apply, const struct conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected);
/* Reports what is wrong with the first argument, an address; a failed look-up may be temporary. */
int set_bad_address(struct apply *apply, const struct conf_directive *directive, const char *wrong);

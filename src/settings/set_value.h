/* SPDX-License-Identifier: BSD-2-Clause */
/* Setters of one plain value, which rows of all tables share: the field is an int64_t, or a
 * const char *. A value that is refused is reported, and the field then holds anything. */
#pragma once

#include "base/compiler.h"
#include "settings/setting.h"

FB_SETTER(fb_set_flag);
FB_SETTER(fb_set_number);
FB_SETTER(fb_set_size);
FB_SETTER(fb_set_msec); /* takes "off", too, where the least value is 0 */
FB_SETTER(fb_set_string);
FB_SETTER(fb_set_path);
FB_SETTER(fb_set_nothing);
FB_SETTER(fb_set_include);
/* Sets the place that the argument has among the names. */
int set_choice(struct fb_apply *apply, const struct fb_conf_directive *directive,
    const char *const *names, const char *expected, void *field);

/* Reports `invalid value "x" in "name" directive: TEXT`. Returns -1. */
int fb_bad_value(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *format, ...) FB_PRINTF(4, 5);
/* Reports the same, and suggests the nearest of the names. */
int fb_bad_name(struct fb_apply *apply, const struct fb_conf_directive *directive, unsigned arg,
    const char *const *names, const char *expected);

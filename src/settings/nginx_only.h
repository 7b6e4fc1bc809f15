/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives and variables of nginx without a counterpart here (nginx_names.def): without effect,
 * or refused by a clear message, not a similar name. Rows of directive tables come first. */
#pragma once

#include <stdbool.h>

/* Tells whether nginx alone has the directive, and this daemon cannot do without it. */
bool nginx_only(const char *name);
/* The same of a variable of stream {}. */
bool nginx_only_variable(const char *name);
/* Returns the text behind "is not supported" of a directive or a variable: a colon and the feature
 * that this daemon lacks, or "". */
const char *nginx_lacking(const char *name);
/* Returns why this daemon lacks an event mechanism of nginx's; NULL: an unknown mechanism. */
const char *nginx_mechanism(const char *name);
/* Tells whether the file is a module of nginx's own, by the name ngx_..._module.so. */
bool nginx_module(const char *path);
/* Returns the contexts in which the directive is accepted without an effect. */
unsigned nginx_no_effect(const char *name);
/* Return the nearest name without effect in this context, or of the refused names; or NULL. */
const char *nginx_nearest_no_effect(const char *name, unsigned at);
const char *nginx_nearest(const char *name);

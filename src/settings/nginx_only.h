/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives and variables of nginx that this daemon does not have: those that have no effect here,
 * and those that it refuses by saying so, instead of suggesting a similar name. Names are the rows
 * of nginx_names.def. A row of a directive table with the same name takes precedence. */
#pragma once

#include <stdbool.h>

/* Tells whether nginx alone has the directive, and this daemon cannot do without it. */
bool nginx_only(const char *name);
/* The same of a variable of stream {}. */
bool nginx_only_variable(const char *name);
/* Returns what is to follow "is not supported" in the report of such a directive or variable: a
 * colon and what this daemon lacks, or "" where nothing more is known. */
const char *nginx_lacking(const char *name);
/* Returns why this daemon lacks an event mechanism of nginx's; NULL: it is none of these. */
const char *nginx_mechanism(const char *name);
/* Tells whether the file is one of nginx's own modules, which are all called ngx_..._module.so. */
bool nginx_module(const char *path);
/* Returns the contexts (enum context) in which the directive is accepted without an effect; 0: it
 * is not of these. */
unsigned nginx_no_effect(const char *name);
/* Return the name nearest to a misspelt name, or NULL: of the names without effect in this context,
 * and of the refused names. */
const char *nginx_nearest_no_effect(const char *name, unsigned at);
const char *nginx_nearest(const char *name);

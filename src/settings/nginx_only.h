/* SPDX-License-Identifier: BSD-2-Clause */
/* Directives and variables of nginx without a counterpart in this daemon: directives without an
 * effect here, and names refused by a clear message instead of the suggestion of a similar name.
 * Names are the rows of nginx_names.def. A row of a directive table with the same name takes
 * precedence. */
#pragma once

#include <stdbool.h>

/* Tells whether nginx alone has the directive, and this daemon cannot do without it. */
bool nginx_only(const char *name);
/* The same of a variable of stream {}. */
bool nginx_only_variable(const char *name);
/* Returns the text behind "is not supported" in the report of a refused directive or variable: a
 * colon and the feature that this daemon lacks, or "" where nothing more is known. */
const char *nginx_lacking(const char *name);
/* Returns why this daemon lacks an event mechanism of nginx's; NULL: an unknown mechanism. */
const char *nginx_mechanism(const char *name);
/* Tells whether the file is a module of nginx's own, by the name ngx_..._module.so. */
bool nginx_module(const char *path);
/* Returns the contexts (enum context) in which the directive is accepted without an effect; 0: in
 * no context. */
unsigned nginx_no_effect(const char *name);
/* Return the name nearest to a misspelt name, or NULL: of the names without effect in this context,
 * and of the refused names. */
const char *nginx_nearest_no_effect(const char *name, unsigned at);
const char *nginx_nearest(const char *name);

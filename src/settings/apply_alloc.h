/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the cycle while a configuration is read, and the paths of its texts. */
#pragma once

#include <stddef.h>

struct apply;

/* Returns memory that was asked of an arena; reports NULL. */
void *apply_taken(struct apply *apply, void *memory);
/* Allocates memory of the cycle, zeroed; NULL after a report. */
void *apply_alloc(struct apply *apply, size_t size);
/* Returns the list with room for a further element, zeroed, perhaps a copy; NULL after a report. */
void *apply_grow(struct apply *apply, void *list, unsigned n, size_t size);
/* Copies the text; NULL after a report. */
char *apply_strdup(struct apply *apply, const char *text);
/* Makes a path absolute: a relative one begins at the prefix. */
const char *apply_path(struct apply *apply, const char *text);
/* Makes the path of a configuration file absolute, from the directory of the main file. */
const char *apply_conf_path(struct apply *apply, const char *text);
/* Makes the path in "unix:path" absolute by apply_path(); returns any other address as it is. */
const char *apply_address(struct apply *apply, const char *text);

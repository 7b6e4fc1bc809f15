/* SPDX-License-Identifier: BSD-2-Clause */
/* `log_format` and `access_log`. */
#pragma once

#include "features/access_log/access_log.h"
#include "settings/setting.h"

struct scope;

int log_format_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
/* Returns the format of that name, or NULL. */
const struct line_format *log_format_find(const struct apply *apply, const char *name);
/* Returns the format whose name is nearest to an unknown one, or NULL. */
const char *log_format_nearest(const struct apply *apply, const char *name);

/* cache_directive.c */
int open_log_file_cache_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);

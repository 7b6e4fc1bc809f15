/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of limits. Private to settings/. */
#pragma once

#include "settings/apply.h"

int limit_conn_set_zone(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
int limit_conn_set(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
int limit_conn_set_rate(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
int limit_conn_set_log_level(struct apply *apply, const struct setting *setting,
    const struct conf_directive *directive, void *field);
/* Adds the rules that a server has to its phases. */
void limit_conn_finish(struct apply *apply, struct scope *server);
/* Reports zones that rules name, and nothing declares. */
void limit_conn_check(struct apply *apply, struct scope *stream);

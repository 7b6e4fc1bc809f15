/* SPDX-License-Identifier: BSD-2-Clause */
/* The directives of limits. Private to settings/. */
#pragma once

#include "settings/apply.h"

SETTER(limit_conn_set_zone);
SETTER(limit_conn_set);
SETTER(limit_conn_set_rate);
SETTER(limit_conn_set_log_level);
/* Adds the rules that a server has to its phases. */
void limit_conn_finish(struct apply *apply, struct scope *server);
/* Reports zones that rules name, and nothing declares. */
void limit_conn_check(struct apply *apply, struct scope *stream);

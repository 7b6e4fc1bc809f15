/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `error_log` in all contexts: what one defines, and the logs that servers have for
 * themselves. Private to settings/. */
#pragma once

#include "settings/apply.h"

/* Reads a directive; -1 after a report. */
int error_log_read(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target);

/* error_log_server.c: Adds to the logs of the block. */
SETTER(error_log_set_server);
/* Gives a server the logs that it has for itself, or from its stream. */
void error_log_finish_server(struct apply *apply, struct scope *server);

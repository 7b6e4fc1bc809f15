/* SPDX-License-Identifier: BSD-2-Clause */
/* The directive `error_log` in all contexts: the targets. Private to the configuration. */
#pragma once

#include "settings/apply.h"

/* Reads a directive; -1 after a report. */
int error_log_read(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Destinations of logs in directives, and the list of destinations of stream {}. */
#pragma once

#include "base/log_target.h"

struct apply;
struct conf_directive;

/* Sets the target's destination from the first argument; -1 after a report. */
int log_targets_find(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target);
/* Copies the target to the cycle's, which are opened, shared, reopened and closed together. */
struct log_target *log_targets_add(struct apply *apply, const struct log_target *target);
/* Reads an `error_log`; -1 after a report. */
int log_targets_read(
    struct apply *apply, const struct conf_directive *directive, struct log_target *target);

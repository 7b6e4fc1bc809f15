/* SPDX-License-Identifier: BSD-2-Clause */
/* The outcome of a command, as the control socket replies it. */
#pragma once

#include "base/json.h"
#include "base/log.h"
#include "cli/cmdline.h"
#include "cli/exchange.h"

/* Prints the error of a reply that is not "ok". */
void outcome_print_error(struct json_value reply, struct log *log);
/* Prints the outcome; returns the exit code. */
int outcome_print(const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log);

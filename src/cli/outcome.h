/* SPDX-License-Identifier: BSD-2-Clause */
/* The outcome of a command, as the control socket replies it. */
#pragma once

#include "base/log.h"
#include "cli/cmdline.h"
#include "cli/exchange.h"

/* Prints the outcome; returns the exit code. */
int outcome_print(const struct cmdline *cmdline, const struct cli_exchange *reply, struct log *log);

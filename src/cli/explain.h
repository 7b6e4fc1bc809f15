/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements `forkbeard explain`: the manual's entries of directives, as text. */
#pragma once

#include "cli/cmdline.h"

/* Prints the entry of the directive in the argument, or all names; returns the exit code. */
int cli_explain(const struct cmdline *cmdline, struct log *log);

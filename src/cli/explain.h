/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements `forkbeard explain`: the manual's entries of directives, as text. */
#pragma once

#include "cli/cmdline.h"

/* Prints the entry of the directive in the argument, or all names; an unknown name is an emerg line
 * with the nearest names. Returns the exit code. */
int cli_explain(const struct cmdline *cmdline, struct log *log);

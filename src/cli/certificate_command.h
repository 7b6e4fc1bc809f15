/* SPDX-License-Identifier: BSD-2-Clause */
/* Implements `forkbeard certificate`: a self-signed certificate for trials and closed networks. */
#pragma once

#include "cli/cmdline.h"

/* Writes a new key and certificate for the names in the arguments, and prints both paths, the
 * fingerprint and the directives to use. Returns the exit code. */
int cli_certificate(const struct cmdline *cmdline, struct log *log);

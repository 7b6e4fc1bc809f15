/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the rows that workers write for `forkbeard sessions`. */
#pragma once

#include "cli/session_rows.h"

/* Reads the pipe that a master has passed with the reply, a list of workers, until each worker has
 * written the last line. Names silent workers; returns the exit code. */
int sessions_collect(struct session_rows *rows, struct json_value reply, int pipe, struct log *log);

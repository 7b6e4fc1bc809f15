/* SPDX-License-Identifier: BSD-2-Clause */
/* The single process of `master_process off`. */
#pragma once

#include "master/start.h"

/* Runs until it is told to end, and returns the exit code. The role's signals are installed. */
int single_main(struct start *start);

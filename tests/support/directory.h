/* SPDX-License-Identifier: BSD-2-Clause */
/* An empty directory for a test program's files, removed with its content. */
#pragma once

#include "support/test.h"

/* The directory's path, in the tests of a TCase that directory_add() was called for. */
extern char directory[];

/* Makes the directory before the first of the tests and removes it after the last. */
void directory_add(TCase *tcase);

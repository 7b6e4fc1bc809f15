/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a driver of fuzzers within a test, where the fixture's checks want to be. */
#pragma once

/* Returns the result of `run`; EXIT_FAILURE after a failed check. */
int run_within_test(int (*run)(int argc, char **argv), int argc, char **argv);

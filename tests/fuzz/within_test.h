/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a driver of fuzzers within a test, where the fixture's checks want to be. */
#pragma once

/* Returns what `run` returns; EXIT_FAILURE when a check has failed. */
int run_within_test(int (*run)(int argc, char **argv), int argc, char **argv);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A fuzzer is a single function, called by libFuzzer with invented input (tests/README.md), and by
 * replay.c with the inputs kept in tests/fuzz/corpus, in every "make check". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns 0; aborts when something does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* SPDX-License-Identifier: BSD-2-Clause */
/* A fuzzer is one function, which libFuzzer calls with what it invents (tests/README.md), and
 * replay.c with what is kept in tests/fuzz/corpus, in every "make check". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns 0; aborts when something does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

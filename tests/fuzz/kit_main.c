/* SPDX-License-Identifier: BSD-2-Clause */
/* A fuzzer as a program, with the driver of the test kit. */
#include "fuzz/fuzz.h"
#include "fuzz/within_test.h"

#include <forkbeard/test.h>

static int run(int argc, char **argv)
{
    return fb_test_fuzz_main(argc, argv, LLVMFuzzerTestOneInput);
}

int main(int argc, char **argv)
{
    return run_within_test(run, argc, argv);
}

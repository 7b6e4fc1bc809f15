/* SPDX-License-Identifier: BSD-2-Clause */
/* Trials in great number: feeds a fuzzer with as many short random inputs as its arguments say. A
 * trial's bytes are made of the seed and its number, so that one that fails can be run alone, where
 * nothing stays from trial to trial:
 *
 *   trials_map COUNT BYTES [SEED [FIRST]] */
#include "fuzz/fuzz.h"
#include "fuzz/within_test.h"
#include "support/random.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MOST 4096

static struct {
    uint64_t seed, number; /* the trial that runs */
} current;

/* An error that a sanitizer finds ends as a failed assertion does. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void)
{
    return "abort_on_error=1";
}

static void report_trial(int number)
{
    char text[100];
    int n = snprintf(text, sizeof(text), "failed: trial %" PRIu64 " of seed %" PRIu64 "\n",
        current.number, current.seed);

    (void)number; /* abort() goes on */
    if (write(STDERR_FILENO, text, (size_t)n) == -1)
        _exit(EXIT_FAILURE);
}

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Fills the end of the block, so that a sanitizer sees a byte read too far. */
static void run_trial(uint8_t *block, size_t most)
{
    uint64_t random = current.seed;
    size_t n, words;
    uint8_t *data;

    random = next_random(&random) + current.number;
    n = most / 2 + 1 + random_below(&random, (uint32_t)(most / 2));
    data = block + most - n;
    for (words = 0; words + sizeof(uint64_t) <= n; words += sizeof(uint64_t))
        memcpy(data + words, &(uint64_t) { next_random(&random) }, sizeof(uint64_t));
    for (; words < n; words++)
        data[words] = (uint8_t)next_random(&random);
    if (LLVMFuzzerTestOneInput(data, n) != 0)
        abort();
}

static int run(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t first = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
    uint64_t begin = nanoseconds(), before = begin, longest = 0, took;
    uint8_t *block;

    if (count == 0 || bytes < 2 || bytes > BYTES_MOST || (block = malloc(bytes)) == NULL) {
        fprintf(stderr, "usage: %s COUNT BYTES [SEED [FIRST]]\n", argv[0]);
        return EXIT_FAILURE;
    }
    current.seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
    signal(SIGABRT, report_trial);
    for (current.number = first; current.number < first + count; current.number++) {
        uint64_t now;

        run_trial(block, bytes);
        now = nanoseconds();
        longest = now - before > longest ? now - before : longest;
        before = now;
    }
    free(block);
    took = (before - begin) / 1000000;
    printf("%s: %" PRIu64 " trials of seed %" PRIu64 ", %" PRIu64 " a second, the longest %" PRIu64
           " ms\n",
        argv[0], count, current.seed, count * 1000 / (took > 0 ? took : 1), longest / 1000000);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    return run_within_test(run, argc, argv);
}

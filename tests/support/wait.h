/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a condition, with a deadline, which fails the test. */
#pragma once

#include "support/test.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* Whether the binary runs under a wrapper: slow, and visible in /proc. */
static inline bool is_wrapped(void)
{
    const char *wrapper = getenv("FORKBEARD_WRAPPER");

    return wrapper != NULL && *wrapper != '\0';
}

static inline int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The longest wait of a test of the daemon. */
static inline int64_t patience_ms(void)
{
    return is_wrapped() ? 2 * TEST_PATIENCE_MS : TEST_PATIENCE_MS;
}

static inline int64_t deadline_ms(void)
{
    return now_ms() + patience_ms();
}

static inline void pause_briefly(void)
{
    nanosleep(&(struct timespec) { .tv_nsec = 2000000 }, NULL);
}

/* WAIT_FOR(condition); on any thread. */
#define WAIT_FOR(condition)                                                                        \
    for (int64_t until_ = deadline_ms(); !(condition); pause_briefly())                            \
    now_ms() < until_ ? (void)0 : ck_abort_msg("waited in vain for: %s", #condition)

/* SPDX-License-Identifier: BSD-2-Clause */
/* A fault to be met by a process of the daemon: a system call that fails, once or from then on, or
 * that kills the process. The test and the preloaded library (faults_preload.c) share the plan as a
 * file in memory, named by the environment variable FB_FAULTS. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

enum fault_kind {
    FAULT_FAILS,
    FAULT_FAILS_LATE, /* when clients have come */
    FAULT_GOES_ON_FAILING,
    FAULT_EXITS,
    FAULT_ABORTS,
    FAULT_HANGS,
    FAULT_IS_SIGNALED, /* a signal comes, and the call succeeds */
};

#define FAULT_ANY_PROCESS UINT32_MAX /* every call in every process */

struct fault_plan {
    atomic_uint armed;
    uint32_t round;   /* differs each time: children from earlier rounds are not counted */
    char call[24];    /* a function of the C library */
    uint32_t process; /* 0: the master, 1: the first child forked from now on, ... */
    uint32_t nth;     /* number of the call of the function in the process, from 1 */
    uint32_t kind;    /* enum fault_kind */
    int32_t error;    /* errno of a failing call; number of the signal */
    atomic_uint forks, calls, hits;
    atomic_uint clients; /* sessions begun so far */
};

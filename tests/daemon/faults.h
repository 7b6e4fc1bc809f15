/* SPDX-License-Identifier: BSD-2-Clause */
/* A fault that a process of the daemon is to meet: a system call that fails, once or from then on,
 * or that the process does not survive. The test and the library that is preloaded
 * (faults_preload.c) share it as a file in memory, which the environment variable FB_FAULTS
 * names. */
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
    FAULT_IS_SIGNALED, /* a signal comes, and the call does what it does */
};

#define FAULT_ANY_PROCESS UINT32_MAX /* every call in every process */

struct fault_plan {
    atomic_uint armed;
    uint32_t round;   /* another each time: children from before are none of these */
    char call[24];    /* a function of the C library */
    uint32_t process; /* 0: the master, 1: the first child that it forks from now on, ... */
    uint32_t nth;     /* number of the call of this function in that process, from 1 */
    uint32_t kind;    /* enum fault_kind */
    int32_t error;    /* errno, where it fails; a signal's number, where it is signaled */
    atomic_uint forks, calls, hits;
    atomic_uint clients; /* sessions begun so far */
};

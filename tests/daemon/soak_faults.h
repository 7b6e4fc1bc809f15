/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers broken while clients come without a pause and a reload passes: no client waits, and the
 * daemon ends in time. */
#pragma once

#include <stdbool.h>

enum {
    SOAK_FAULTS_STOPPED,
    SOAK_FAULTS_NO_EPOLL,
    SOAK_FAULTS_NO_DESCRIPTORS,
    SOAK_FAULTS_FORKED,
    SOAK_FAULTS_JOB,
    SOAK_FAULTS_LOG_READER,
    SOAK_FAULTS_MASTER,
    SOAK_FAULTS,
};

struct soak_faults_plan {
    int fault;         /* SOAK_FAULTS_... */
    unsigned clients;  /* served from the fault to the end, at least */
    unsigned delay_ms; /* the longest that a client may take; 0: unbounded, on a busy machine */
    bool quits;        /* ends by QUIT, else by TERM */
};

void soak_faults(const struct soak_faults_plan *plan);

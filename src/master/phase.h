/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of the daemon: master_set_phase() changes it. */
#pragma once

enum master_phase {
    MASTER_RUNS,
    MASTER_QUITS,      /* sessions may end by themselves */
    MASTER_RESUMES,    /* the same, while a generation starts that is to serve again */
    MASTER_TERMINATES, /* workers end at once */
};

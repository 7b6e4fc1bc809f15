/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of the daemon. It only ever goes further. */
#pragma once

enum master_phase {
    MASTER_RUNS,
    MASTER_QUITS,      /* sessions may end by themselves */
    MASTER_TERMINATES, /* workers end at once */
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The phase of the daemon, and the title that shows it: one function changes them, by a step that
 * must be legal. Only a resume leads back. */
#include "base/check.h"
#include "master/master.h"
#include "process/process_ops.h"

#include <assert.h>

void master_set_phase(struct master *master, enum master_phase phase)
{
    static const unsigned legal[] = {
        [MASTER_RUNS] = 1u << MASTER_QUITS | 1u << MASTER_TERMINATES,
        [MASTER_QUITS] = 1u << MASTER_RESUMES | 1u << MASTER_TERMINATES,
        [MASTER_RESUMES] = 1u << MASTER_RUNS | 1u << MASTER_QUITS,
        [MASTER_TERMINATES] = 0,
    };

    CHECK_KIND(master, MASTER_KIND);
    assert((legal[master->phase] >> phase & 1) != 0);
    master->phase = phase;
    process_ops->set_title(
        phase == MASTER_RUNS ? "master process" : "master process is shutting down", NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets attributes by prctl(). Some are undone by a change of the user, and are set after it. */
#include "process/attributes.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>

void process_allow_dumps(struct log *log)
{
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1)
        log_write(log, LEVEL_ALERT, errno, "prctl(PR_SET_DUMPABLE) failed");
}

int process_adopt_orphans(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void process_end_with_parent(unsigned seconds)
{
    (void)seconds;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

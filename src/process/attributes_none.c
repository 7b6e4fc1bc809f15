/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces attributes_linux.c: core dumps are as the system has them after a change of the user,
 * orphans go to the first process, and a child whose parent is killed ends by an alarm clock. */
#include "process/attributes.h"

#include <unistd.h>

void process_allow_dumps(struct log *log)
{
    (void)log;
}

void process_keep_capabilities(struct log *log)
{
    (void)log;
}

void process_take_net_raw(struct log *log)
{
    (void)log;
}

int process_adopt_orphans(void)
{
    return 0;
}

void process_end_with_parent(unsigned seconds)
{
    alarm(seconds);
}

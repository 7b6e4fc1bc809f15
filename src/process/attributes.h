/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of this process that POSIX does not know: core dumps after a change of the
 * user, orphans, the end of the parent. Linux sets them (attributes_linux.c); elsewhere
 * (attributes_none.c) each call does as much as can be done without. */
#pragma once

#include "base/log.h"

/* Allows core dumps again, which a change of the user has forbidden; a failure is an alert. */
void process_allow_dumps(struct log *log);
/* Makes this process the parent of each descendant whose own parent ends; -1 with errno. */
int process_adopt_orphans(void);
/* Ends this child process when its parent ends; where the system cannot, after this time. */
void process_end_with_parent(unsigned seconds);

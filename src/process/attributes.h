/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of this process that POSIX does not know: core dumps after a change of the
 * user, orphans, the end of the parent. Linux sets them (attributes_linux.c); elsewhere
 * (attributes_none.c) each call does as much as can be done without. */
#pragma once

#include "base/log.h"

/* Allows core dumps again, which a change of the user has forbidden; a failure is an alert. */
void process_allow_dumps(struct log *log);
/* Keep CAP_NET_RAW alone of what root may do, to connect from addresses of others, over a change of
 * the user: what is called before it, and behind it. A failure is an alert, and then nothing is
 * kept. */
void process_keep_capabilities(struct log *log);
void process_take_net_raw(struct log *log);
/* Makes this process the parent of each descendant whose own parent ends; -1 with errno. */
int process_adopt_orphans(void);
/* Ends this child process when its parent ends; where the system cannot, after this time. */
void process_end_with_parent(unsigned seconds);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The penalty for a worker that breaks a rule of the channel, which no worker of ours does: it is
 * in somebody else's hands, or damaged, and is killed at once. Its exit replaces it. */
#include "pool/pool.h"

#include "process/signals.h"

#include <assert.h>

void pool_worker_break_rule(struct pool_worker *worker, const char *rule)
{
    assert(worker->pid > 0);
    if (worker->killed != POOL_KILL_NONE)
        return;
    worker->killed = POOL_KILL_CHANNEL;
    log_quota_write(&worker->lines, LEVEL_ALERT, 0,
        "%s %d has broken a rule of the channel (%s), it is killed", pool_worker_title(worker),
        (int)worker->pid, rule);
    signals_send_held(worker->pid, worker->handle, SIGKILL, worker->generation->pool->log);
}

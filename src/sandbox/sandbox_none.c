/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces the sandbox on a system without Landlock and seccomp: `strict` is an error, `on` is a
 * warning, and workers run without a sandbox. */
#include "sandbox/sandbox.h"

#include "process/role.h"
#include "sandbox/confine.h"

#include <assert.h>

static const char lack[] =
    "this forkbeard was built with --with-system=posix, whose workers have no sandbox";

int sandbox_check(const struct cycle *cycle, struct log *log)
{
    if (cycle->core.sandbox == SANDBOX_STRICT)
        log_write(log, LEVEL_EMERG, 0, "\"sandbox strict\" is not possible: %s", lack);
    else if (cycle->core.sandbox == SANDBOX_ON && cycle->core.sandbox_given)
        log_write(log, LEVEL_WARN, 0, "\"sandbox on\" has no effect: %s", lack);
    return cycle->core.sandbox == SANDBOX_STRICT ? -1 : 0;
}

int sandbox_prepare(struct cycle *cycle, struct log *log)
{
    assert(role_is(ROLE_MASTER));
    if (cycle->core.sandbox == SANDBOX_ON && !cycle->core.sandbox_given)
        log_write(log, LEVEL_NOTICE, 0, "workers run without a sandbox: %s", lack);
    return sandbox_check(cycle, log);
}

void sandbox_narrow(struct cycle *cycle)
{
    (void)cycle;
}

void sandbox_narrow_keeper(struct cycle *cycle)
{
    (void)cycle;
}

int sandbox_enter(const struct cycle *cycle, struct log *log)
{
    (void)log;
    assert(role_is(ROLE_WORKER));
    assert(cycle->core.sandbox != SANDBOX_STRICT);
    return 0;
}

const char *sandbox_seccomp_lacks(int *error)
{
    *error = 0;
    return lack;
}

const char *sandbox_landlock_lacks(int *error)
{
    *error = 0;
    return lack;
}

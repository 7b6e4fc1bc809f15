/* SPDX-License-Identifier: BSD-2-Clause */
/* The check of an upgrade, which its calls begin or end with. Nothing that the other process sends
 * is asserted on: only how the members fit together. */
#include "upgrade/upgrade.h"

#include <assert.h>

void upgrade_check(const struct upgrade *upgrade)
{
    const struct upgrade_link *link = &upgrade->link;
    bool alone = upgrade->phase == UPGRADE_NONE;

    CHECK_KIND(upgrade, UPGRADE_KIND);
    assert(upgrade->phase < UPGRADE_PHASES);
    assert(link->line_n <= link->in_n && link->in_n <= link->in_size);
    assert((link->in == NULL) == (link->in_size == 0));
    assert(upgrade->other >= 0);
    assert(!alone || upgrade->other == 0);
    assert(!alone || upgrade->main);
    assert(!upgrade->main || !upgrade->main_owed);
    assert(!alone || (link->fd == -1 && upgrade->diag == NULL && upgrade->control == NULL));
    assert(!alone || (upgrade->sockets.n == 0 && upgrade->inboxes.form == 0));
    assert(upgrade->phase < UPGRADE_STARTING || upgrade->main);
    assert(upgrade->deadline.deadline == 0 || upgrade->phase >= UPGRADE_STARTING);
    assert(!upgrade->late || upgrade->phase == UPGRADE_ROLLING_BACK ||
           upgrade->phase == UPGRADE_HANDED_OVER);
}

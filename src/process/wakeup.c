/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's sleep: a descriptor of the set that has had an event is COMMAND_CHANNEL, which SIGIO
 * is too. */
#include "process/wakeup.h"

#include "process/signals.h"

int wakeup_begin(void)
{
    int handlers_fd;

    if (os_wakeup_begin(&handlers_fd) == -1)
        return -1;
    if (handlers_fd != -1)
        signals_wake_by(handlers_fd);
    return 0;
}

void wakeup_sleep(void)
{
    if (os_wakeup_sleep(signals_wait_mask()))
        signals_raise(COMMAND_CHANNEL);
}

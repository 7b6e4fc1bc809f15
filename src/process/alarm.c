/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets SIGALRM for the earliest timer, and sleeps (process/wakeup.h). The system's timer is set
 * only when the deadline has changed: most wake-ups leave it as it is. */
#include "process/alarm.h"

#include "process/process_ops.h"
#include "process/signals.h"

void alarm_sleep(struct alarm *alarm, const struct timers *timers, struct clock *clock)
{
    int wait_ms = timers_wait(timers);
    uint64_t deadline_ms = wait_ms == -1 ? 0 : clock->mono_ms + (uint64_t)wait_ms;

    if (deadline_ms != alarm->deadline_ms) {
        process_ops->set_alarm(wait_ms);
        alarm->deadline_ms = deadline_ms;
    }
    /* a handler may have run outside the sleep, by signals_admit() */
    if (!signals_pending()) {
        process_ops->wakeup_sleep();
        signals_state->any = 0;
    }
    if (signals_take(COMMAND_DEADLINE, NULL))
        alarm->deadline_ms = 0;
    process_ops->read_clock(clock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets SIGALRM for the earliest timer, and sleeps (process/wakeup.h). The system's timer is set
 * only when the deadline has changed: most wake-ups leave it as it is. */
#include "process/alarm.h"

#include "process/signals.h"
#include "process/wakeup.h"

#include <sys/time.h>

static void set_alarm(int wait_ms)
{
    struct itimerval alarm = { .it_value = { 0, 0 } };

    if (wait_ms != -1) {
        alarm.it_value.tv_sec = wait_ms / 1000;
        alarm.it_value.tv_usec = wait_ms > 0 ? wait_ms % 1000 * 1000 : 1;
    }
    setitimer(ITIMER_REAL, &alarm, NULL);
}

void alarm_sleep(struct alarm *alarm, const struct timers *timers, struct clock *clock)
{
    int wait_ms = timers_wait(timers);
    uint64_t deadline_ms = wait_ms == -1 ? 0 : clock->mono_ms + (uint64_t)wait_ms;

    if (deadline_ms != alarm->deadline_ms) {
        set_alarm(wait_ms);
        alarm->deadline_ms = deadline_ms;
    }
    /* a handler may have run outside the sleep, by signals_admit() */
    if (!signals_pending()) {
        wakeup_sleep();
        signals_pending();
    }
    if (signals_take(COMMAND_DEADLINE, NULL))
        alarm->deadline_ms = 0;
    clock_read(clock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's sleep, and its end by signals, and by descriptors of the set of os/wakeup.h. */
#pragma once

#include "os/wakeup.h"

/* Makes this process wake by the descriptors of its set, after signals_install(), and in a child
 * that goes on as the master; -1 with errno. */
int wakeup_begin(void);
/* Sleeps until a signal or a descriptor of the set ends it, with signals_wait_mask(). */
void wakeup_sleep(void);

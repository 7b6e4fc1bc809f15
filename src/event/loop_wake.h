/* SPDX-License-Identifier: BSD-2-Clause */
/* Ticks of timer_resolution. For loop_wake.c and tests alone. */
#pragma once

#include "event/loop.h"

/* Makes timers expire by the ticks of `ms` from now on, none of them early. */
void loop_wake_begin_ticks(struct loop *loop, uint64_t ms);
/* Reads the clock at a tick. */
void loop_wake_tick(struct loop *loop);

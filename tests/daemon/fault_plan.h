/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon under test with the preloaded library that makes calls fail by the plan. */
#pragma once

#include "daemon/daemon.h"
#include "daemon/faults.h"

/* Makes the plan, without a fault. A process has at most one daemon with a plan. */
struct fault_plan *fault_plan_share(struct daemon *daemon);
/* Sends the master a signal at the next call of `call`. */
void fault_plan_signal(struct fault_plan *plan, const char *call, int number);
/* For before_exec: preloads the library. */
void fault_plan_preload(void);

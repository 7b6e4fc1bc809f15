/* SPDX-License-Identifier: BSD-2-Clause */
/* A daemon under test with the library that makes its calls fail as the plan says. */
#pragma once

#include "daemon/daemon.h"
#include "daemon/faults.h"

/* Makes the plan, without a fault. At most one daemon of a process has one. */
struct fault_plan *fault_plan_share(struct daemon *daemon);
/* Sends the master a signal as it makes the next of these calls. */
void fault_plan_signal(struct fault_plan *plan, const char *call, int number);
/* For before_exec: preloads the library. */
void fault_plan_preload(void);

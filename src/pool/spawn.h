/* SPDX-License-Identifier: BSD-2-Clause */
/* Forks of workers. */
#pragma once

#include "pool/layout.h"

/* Forks a process; -1 after an alert line. */
int pool_spawn(struct pool_worker *worker);

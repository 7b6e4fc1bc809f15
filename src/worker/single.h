/* SPDX-License-Identifier: BSD-2-Clause */
/* `master_process off`: what a worker without a master reports to the service manager. */
#pragma once

struct worker;

/* Reports that the worker serves now, and from now on that it is alive. */
void single_serving(struct worker *worker);
/* Reports that the worker has begun to drain or to end. */
void single_ending(struct worker *worker);
/* The worker's loop has ended: its timers are not used any more. */
void single_ended(struct worker *worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The master's messages and signals as commands, taken between turns, never within one; a signal's
 * flag is cleared before the command is carried out. */
#pragma once

struct worker;

/* Watches the channel to the master, where there is one; -1 after an emerg line. */
int worker_open_channel(struct worker *worker);
/* Carries out the commands of signals; called when signals_pending() says so. */
void worker_take_commands(struct worker *worker);

/* Without a master: reports to the service manager that the worker serves, and then lives. */
void worker_notify_serving(struct worker *worker);
/* Ends the reports, with the worker's loop. */
void worker_notify_ended(struct worker *worker);

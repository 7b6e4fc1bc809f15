/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: what the master's messages and signals ask of a worker, and the messages that the
 * worker sends back. Commands are taken between turns, never within one, and a signal's flag is
 * cleared before it is acted on. */
#pragma once

struct worker;

/* Watches the channel to the master, where there is one; -1 after an emerg line. */
int worker_open_channel(struct worker *worker);
/* Does what signals have asked for since the last call; called when signals_pending() says so. */
void worker_take_commands(struct worker *worker);

/* Without a master: reports to the service manager that the worker serves, and from now on lives.
 * */
void worker_notify_serving(struct worker *worker);
/* Ends the reports, with the worker's loop. */
void worker_notify_ended(struct worker *worker);

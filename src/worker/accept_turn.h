/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex in a turn of the loop. */
#pragma once

#include "worker/acceptors.h"

/* Tries the mutex before the wait, and watches the listeners or not; the time to wait: less than
 * `timeout` where another worker has it. */
int accept_before(struct worker *worker, int timeout);
/* Gives the mutex back, after the accept queue. */
void accept_after(struct worker *worker);
/* Whether a rival has taken the mutex, and the shared listeners with it. */
bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor);

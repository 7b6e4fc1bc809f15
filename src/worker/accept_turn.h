/* SPDX-License-Identifier: BSD-2-Clause */
/* The accept mutex in a turn of the loop. */
#pragma once

#include "worker/acceptors.h"

/* Step 2 of a turn with the mutex: tries to take it, and watches the listeners or not. Returns how
 * long to wait: less than `timeout` where another worker holds it. */
int accept_before(struct worker *worker, int timeout);
/* The end of step 5, when this worker holds the mutex: gives it back. */
void accept_after(struct worker *worker);
/* Whether another worker has taken the mutex, because this one has stood still for too long: then
 * the shared listeners are left to the new holder. */
bool accept_steps_back(struct worker *worker, const struct acceptor *acceptor);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepting, from start to release. */
#pragma once

struct worker;

/* Gets a slot for each listening socket; -1 after an emerg line. */
int accept_init(struct worker *worker);
/* Begins to accept; the worker serves from now on. */
void accept_open(struct worker *worker);
/* Accepts the clients that wait, then stops watching and closes the listeners, for good. */
void accept_release(struct worker *worker);
/* Rescans every listener: accepts until its backlog is empty, because a client may be stranded. */
void accept_rescan(struct worker *worker);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The graceful end, and its taking back. */
#pragma once

struct master;

/* Advances a quit, in each wake-up. */
void quit_advance(struct master *master);
/* Makes the service manager drop its copies of listening sockets: clients would wait in their
 * queues, and they would be in the way of the next start, or of ours when we serve again. */
void quit_drop_stored(struct master *master);

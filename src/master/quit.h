/* SPDX-License-Identifier: BSD-2-Clause */
/* The graceful end, and its taking back. */
#pragma once

struct master;

/* Advances a quit, in each wake-up. */
void quit_advance(struct master *master);
/* Makes the service manager drop its copies of listening sockets, where clients would wait, and
 * which would be in the way of the next start or a resume. */
void quit_drop_stored(struct master *master);

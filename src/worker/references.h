/* SPDX-License-Identifier: BSD-2-Clause */
/* References of connections, which mean the same in every worker: the incarnation of a worker's
 * slot, and a name that this worker gives to one connection only. A reference to a connection that
 * has ended finds nothing. */
#pragma once

#include <forkbeard/types.h>
#include <stdint.h>

struct fb_conn;
struct fb_worker;

/* Returns the incarnation that the reference names. */
uint32_t references_incarnation(fb_ref ref);
/* Returns this worker's own incarnation. */
uint32_t references_own(const struct fb_worker *worker);

/* Makes a reference as fb_ref_of() says; 0 without memory. */
fb_ref references_make(struct fb_worker *worker, struct fb_conn *conn);
/* Finds a connection as fb_find() says; NULL for one of another worker, or one that has ended. */
struct fb_conn *references_find(struct fb_worker *worker, fb_ref ref);

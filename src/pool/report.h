/* SPDX-License-Identifier: BSD-2-Clause */
/* A report about certificates, which a keeper writes into memory that the master lends.
 *
 * Responsible for one report at a time, for its size, and for the end of a keeper meanwhile. Never
 * reads a certificate; what the keeper says is given on as untrusted text. */
#pragma once

#include "pool/layout.h"

/* Asks the first keeper of the generation in force, unless a report is awaited; NULL: the pool's
 * owner hears by `reported`, or why that is not possible. */
const char *pool_report_ask(struct pool *pool);
/* Takes a report of n bytes. Returns the broken rule, or NULL. */
const char *pool_report_take(struct pool_worker *worker, uint32_t n);
/* Forgets a report that a process has not made before its end. */
void pool_report_lose(struct pool_worker *worker);

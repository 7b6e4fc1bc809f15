/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates as an operator is told of them, as a line of JSON. Never parses a certificate, and
 * never says more than the store and the log know. Part of keeper/pairs.h. */
#pragma once

#include "keeper/pairs.h"

/* The call report() of struct tls_engine_ops in tls/engine.h. */
char *pair_report_write(struct pairs *pairs, size_t *n);

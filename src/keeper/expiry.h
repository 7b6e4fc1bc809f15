/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a certificate's validity, and the lines that warn of the end. */
#pragma once

#include "base/log.h"

#include <openssl/x509.h>

/* Room for a date, as "2026-11-29 23:59:40 UTC". */
#define EXPIRY_TEXT 32

/* Returns the end in seconds since the epoch; 1 where the certificate has no date. */
int64_t expiry_of(const X509 *certificate);
/* Writes the date; returns `out`. */
const char *expiry_text(int64_t end, char out[EXPIRY_TEXT]);
/* Logs that the certificate of the path has expired, or will within TLS_EXPIRY_DAYS. */
void expiry_remind(const char *path, int64_t end, struct log *log);

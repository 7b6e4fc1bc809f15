/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the mistakes of protocols. */
#pragma once

#include "base/compiler.h"

#include <stdbool.h>

/* Reports a mistaken call (named without "fb_") of the running callback's protocol, or else of
 * `protocol`; `format` says how. Returns, always false, in the test kit, in the master, and where
 * the configuration is read. */
bool checked_report_call(const char *protocol, const char *call, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Reports a mistake of the protocol outside of calls. */
void checked_report(const char *protocol, const char *format, ...) PRINTF_FORMAT(2, 3);

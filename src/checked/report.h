/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports of the mistakes of protocols. */
#pragma once

#include "base/compiler.h"

/* Reports that the protocol of the running callback, or else `protocol`, has made a call (its name
 * without "fb_") in this way. Returns in the test kit, in the master, and where the configuration
 * is read. */
void checked_report_call(const char *protocol, const char *call, const char *format, ...)
    PRINTF_FORMAT(3, 4);
/* Reports anything else that the protocol has done. */
void checked_report(const char *protocol, const char *format, ...) PRINTF_FORMAT(2, 3);

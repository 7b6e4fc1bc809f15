/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a call of OpenSSL has failed, on one line of nginx's form. */
#pragma once

#include <stddef.h>

/* Room for the reasons of a failure that is logged. */
#define REASON_TEXT 1024

/* Writes "WHAT failed (SSL: error:0A0000C1:SSL routines::no shared cipher)" with all errors of
 * OpenSSL's queue, as many as there is room for, and empties the queue. Returns `out`. */
const char *reason_take(char *out, size_t size, const char *what);

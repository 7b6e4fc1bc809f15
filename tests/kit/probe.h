/* SPDX-License-Identifier: BSD-2-Clause */
/* A protocol that does what each line says, for the tests of the kit:
 *
 *     random           two random bytes, in hexadecimal
 *     time             the clock, ms since 1970
 *     job TEXT         the text in upper case, which a thread has done
 *     timer MS         "tick", later
 *     connect ADDRESS  "connected", or "closed REASON"; then what the server says
 *     memory N         "here", or "none"
 *     touch            the state of whoever was closed last
 *     abort, close, shutdown */
#pragma once

#include <forkbeard/test.h>

extern const fb_protocol fb_protocol_probe;

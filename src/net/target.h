/* SPDX-License-Identifier: BSD-2-Clause */
/* An address to connect to, with its text.
 *
 * Responsible for distinguishing an address to connect to from what only `listen` takes: a port
 * alone, "*" and a range of ports. Invariant: a target that was parsed has a port, or a unix
 * path. */
#pragma once

#include "net/address.h"

struct fb_target {
    struct address address;
    char text[ADDRESS_TEXT]; /* for log lines */
};

/* Parses "1.2.3.4:80", "[::1]:80", "unix:/path"; and with `names` "name:80", resolved by the system
 * to the first known address. Returns NULL, or a description of the fault in the text. */
const char *target_parse(const char *text, bool names, struct fb_target *out);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in a certificate: DNS names, with "*" as the first label or without, and IP addresses. */
#pragma once

#include <stdbool.h>

struct certificate_name {
    const char *text; /* the caller's */
    bool is_address;  /* IPv4 or IPv6 */
};

/* Returns NULL, or a constant text about the mistake, to follow the name: "has an empty label". A
 * name without mistakes has no slash, comma or colon, unless an IPv6 address. */
const char *certificate_name_parse(struct certificate_name *name, const char *text);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of one `resolver` of the configuration. Only data: settings/ fills it in, and a worker
 * has a resolver for each that is in use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct names_setting {
    const char *servers;        /* "address:port,...", or NULL: the system's, and /etc/hosts */
    int64_t valid;              /* ms for which answers are kept; 0: their own time */
    bool ipv4, ipv6;            /* addresses that are looked up where any will do */
    bool used;                  /* some server, or stream {}, has it */
    struct names_setting *next; /* in the order of the file; NULL: the last one */
};

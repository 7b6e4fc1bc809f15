/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of a `resolver` of the configuration, filled in by settings/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Users of a resolver. */
enum names_users {
    NAMES_OF_SESSIONS = 1, /* sessions and protocols, in each worker */
    NAMES_OF_GROUPS = 2,   /* the process that asks for the groups' servers */
};

struct names_setting {
    const char *servers;        /* "address:port,...", or NULL: the system's, and /etc/hosts */
    int64_t valid;              /* ms for which answers are kept; 0: the time to live */
    bool ipv4, ipv6;            /* families looked up where any will do */
    unsigned users;             /* enum names_users; 0: nothing has it */
    struct names_setting *next; /* in the order of the file; NULL: the last resolver */
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what somebody might do who has taken a worker over, and knows nothing of the daemon: random
 * writes into all memory that is shared, random bytes and calls into all descriptors.
 *
 * A number decides all that is random. What the attack itself breaks on does not end it: signals of
 * its own faults are caught. Clients of others, and files that are none of memory, are let be. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* Makes so many writes, and as many calls on descriptors. The connection whose peer has the address
 * is the attacker's own, and is used up. */
void attack_blindly(uint64_t seed, unsigned n, const struct sockaddr_storage *own);

/* How far memory reaches that is shared with other processes: descriptors by which it can be
 * written, read-only mappings of it that could be made writable, mappings that could be made longer
 * or moved. All is undone. */
struct attack_reach {
    unsigned descriptors, writable, longer;
};

struct attack_reach attack_reach(void);

/* Marks the servers of all groups with a zone as failed for ever; returns how many. */
unsigned attack_servers(void);

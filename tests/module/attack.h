/* SPDX-License-Identifier: BSD-2-Clause */
/* Acts like an attacker in a captured worker, without knowledge of the daemon: random writes into
 * all shared memory, random bytes and calls into all descriptors. A number seeds all randomness.
 * The attack survives faults of its own making: signals are caught. Clients of other workers, and
 * files other than memory, are spared. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

/* Makes so many writes, and as many calls on descriptors. The connection whose peer has the address
 * is the attacker's own, and is used up. */
void attack_blindly(uint64_t seed, unsigned n, const struct sockaddr_storage *own);

/* How far memory shared with foreign processes is reachable: writable descriptors of the memory,
 * read-only mappings with a way to write access, mappings open to growth or moves. Every attempt is
 * undone. */
struct attack_reach {
    unsigned descriptors, writable, longer;
};

struct attack_reach attack_reach(void);

/* Marks the servers of all groups with a zone as failed for ever; returns how many. */
unsigned attack_servers(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The tickets of a context: libssl's callback for their keys, which are the ring's of all keepers,
 * or those of files, which several machines can have.
 *
 * Responsible for reading the files, and for replacing a ticket of an older key. Never keeps a key
 * of the ring. */
#pragma once

#include "keeper/libssl.h"
#include "keeper/pem.h"
#include "keeper/ticket_ring.h"

struct tickets {
    const struct ticket_ring *ring;
    struct ticket_key *keys; /* keys of files, the first encrypts; NULL: the ring's are used */
    unsigned n;
};

/* Returns the time by the monotonic clock, in ms. */
uint64_t tickets_clock(void);
/* Reads the profile's files and sets the callback of the context; -1 after an emerg line about each
 * mistake. The ring outlives the context. Zeroed memory may be closed. */
int tickets_open(struct tickets *tickets, const struct libssl *lib, SSL_CTX *ctx,
    const struct tls_profile *profile, struct pem_files *files, const struct ticket_ring *ring,
    struct log *log);
/* Overwrites the keys and frees them. */
void tickets_close(struct tickets *tickets);

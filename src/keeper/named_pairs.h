/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs whose paths have variables: read when a handshake needs them, by names from its start.
 *
 * Responsible for reading both files at one time, for the caches of the configuration, and for why
 * a pair cannot be had. Nothing is known of a pair before; the keeper opens its files itself
 * (keeper/named_file.h). Without a cache each handshake reads them. */
#pragma once

#include "keeper/pair_cache.h"

struct named_pairs {
    struct pem_files *pem;      /* for passwords, which the master opens */
    struct pair_cache *caches;  /* those of the configuration, by index */
    struct pem_file *passwords; /* of each profile, by index */
    struct pair read;           /* the pair that is lent without a cache */
};

/* Begins in zeroed memory, and reads passwords; -1 after a line of each mistake. */
int named_pairs_open(struct named_pairs *pairs, struct pem_files *pem, struct log *log);
void named_pairs_close(struct named_pairs *pairs);
/* Reads the passwords again that have changed. */
void named_pairs_refresh(struct named_pairs *pairs, struct log *log);
/* Finds pair i of a profile by the names of its certificate and its key, which lie behind one
 * another, each with a NUL, at a monotonic time. The pair is lent until the next call; NULL: there
 * is none, and `text` says why. */
const struct pair *named_pairs_find(struct named_pairs *pairs, const struct tls_profile *profile,
    unsigned i, const char *names, uint64_t now_ms, char text[TLS_TEXT]);

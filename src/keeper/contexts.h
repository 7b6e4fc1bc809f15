/* SPDX-License-Identifier: BSD-2-Clause */
/* The contexts of all profiles, of which profiles with equal settings share one, and their pairs.
 *
 * Responsible for following the changes of files: a context is replaced as a whole or not at all,
 * as is a pair (keeper/pairs.h), and for the lines about replaced files. */
#pragma once

#include "keeper/context.h"
#include "keeper/pairs.h"

/* A file of contexts. */
struct contexts_file {
    uint8_t digest[PEM_DIGEST]; /* SHA-256 of the bytes in a context; zero: none yet */
    bool looked, changed;       /* by the current refresh */
};

struct contexts {
    const struct libssl *lib;
    const struct ticket_ring *ring;
    struct pem_files files;
    struct contexts_file *of_files; /* for each file */
    struct context *list;           /* of different settings */
    unsigned n;
    uint32_t *of_profiles; /* the index in the list of each profile's */
    struct pairs pairs;
};

/* Makes the contexts in zeroed memory, and tries the first pairs; -1 after an emerg line of each
 * mistake. What is given outlives the contexts. */
int contexts_create(struct contexts *contexts, const struct libssl *lib, struct tls_files *files,
    const struct ticket_ring *ring, struct log *log);
/* Frees the contexts, also after a failure. */
void contexts_destroy(struct contexts *contexts);
/* Returns the context of a profile. */
const struct context *contexts_find(const struct contexts *contexts, uint32_t profile);
/* The call refresh() of struct tls_engine_ops in tls/engine.h. */
void contexts_refresh(struct contexts *contexts, struct log *log);

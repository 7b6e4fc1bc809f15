/* SPDX-License-Identifier: BSD-2-Clause */
/* The contexts of all profiles, which follow the changes of their files.
 *
 * Responsible for finding out what has changed, for replacing a profile's context as a whole or not
 * at all, and for the lines about replaced files. Never keeps a parsed file beside the contexts. */
#pragma once

#include "keeper/context.h"

/* A file as the contexts have it. */
struct contexts_file {
    uint8_t digest[PEM_DIGEST]; /* of its bytes in a context; zero: none yet, or a key */
    bool changed;               /* found by the current refresh */
    int64_t expiry;             /* of a certificate, in seconds since the epoch; 0: none yet */
};

struct contexts {
    const struct libssl *lib;
    const struct ticket_ring *ring;
    struct pem_files files;
    struct contexts_file *of_files; /* as many as there are files */
    struct context *list;           /* of each profile */
    unsigned n;
};

/* Makes the contexts in zeroed memory; -1 after an emerg line of each mistake. What is given
 * outlives the contexts, except for the log. */
int contexts_create(struct contexts *contexts, const struct libssl *lib, struct tls_files *files,
    const struct ticket_ring *ring, struct log *log);
/* Frees the contexts, also after a failure. */
void contexts_destroy(struct contexts *contexts);
/* As the calls of struct tls_engine_ops in tls/engine.h. */
void contexts_refresh(struct contexts *contexts, struct log *log);
void contexts_remind(struct contexts *contexts, struct log *log);

/* SPDX-License-Identifier: BSD-2-Clause */
/* The certificates and keys of all profiles, however many: parsed when a handshake needs them.
 *
 * Responsible for what a pair is at a time: the latest that was found good, from the cache, the
 * store or its files, in this order. The engine that writes the store tries all pairs, and again
 * when files have changed; others read files only of pairs that the store lacks. Never has more
 * than one file open for a pair's reading asked for, and never waits for a file, but at the start.
 * Invariant: a pair with a record goes on with it while its files are bad. */
#pragma once

#include "keeper/pair_cache.h"

/* Why the files of a pair were refused last. */
struct pair_failure {
    LIST_ENTRY(pair_failure) link;
    uint32_t number;
    uint64_t identities[PAIR_FILES];
    int64_t at; /* seconds since the epoch */
    char text[];
};

/* A pair of a profile; NULL: none. */
struct pair_place {
    const struct tls_profile *profile;
    const struct tls_pair *of;
};

/* The files of a pair that is read. */
struct pair_load {
    struct pair_place place;
    bool asked;       /* by a handshake */
    bool at_once;     /* files are waited for */
    uint32_t version; /* the store's, before any file was opened */
    unsigned next;    /* the file that is asked for */
    int fds[PAIR_FILES], errors[PAIR_FILES];
};

/* A walk over all pairs, each number once. */
struct pairs_walk {
    bool runs, again;
    uint8_t mark; /* in the states of numbers that were visited */
    uint32_t profile, pair;
};

struct pairs {
    struct log *log;
    struct tls_files *files;
    struct pem_files pem;
    /* Whether libssl takes a pair: NULL, or the name of the failed call; *of_key: for its key. */
    const char *(*take)(
        void *host, const struct tls_profile *profile, const struct pair *pair, bool *of_key);
    void *host;
    struct tls_memory own; /* the store's, unless shared */
    struct pair_store store;
    bool writes;     /* the store, for all its engines */
    bool starts;     /* mistakes fail the start */
    uint8_t *states; /* bits of pairs.c and pair_load.c, by number */
    struct pair_cache cache;
    LIST_HEAD(, pair_failure) failures;
    struct pair_load load;
    struct pair_place wanted; /* by a handshake, after the load under way */
    struct pairs_walk walk;   /* tries all pairs */
    bool first_end_is_known;  /* as far as the pairs are */
    int64_t first_end;        /* of a certificate, in seconds since the epoch; 0: none is known */
    uint32_t first_file;      /* that certificate's */
};

enum pairs_found {
    PAIRS_FOUND,
    PAIRS_BAD,   /* files are bad, and were not good before */
    PAIRS_LATER, /* a file is awaited */
};

/* Begins in zeroed memory; `take` and `host` are set. -1 without memory. */
int pairs_open(struct pairs *pairs, struct tls_files *files, struct log *log);
/* Frees all, also after a failure. */
void pairs_close(struct pairs *pairs);
/* Tries the first of all pairs, and waits for their files; -1 after a line of each mistake. */
int pairs_try(struct pairs *pairs, unsigned most);
/* Finds a pair of a profile, which is lent until the next call. */
enum pairs_found pairs_find(struct pairs *pairs, const struct tls_profile *profile,
    const struct tls_pair *of, const struct pair **found);
/* Looks at the files of all pairs: now, or, with want(), from now on, file by file. */
void pairs_refresh(struct pairs *pairs);
/* Takes the file that was asked for. */
void pairs_opened(struct pairs *pairs, int fd, int error);
/* Visits all pairs at once, each number once: begins, and returns the next one; NULL at the end. */
void pairs_walk_begin(struct pairs *pairs, struct pairs_walk *walk);
struct pair_place pairs_walk_next(struct pairs *pairs, struct pairs_walk *walk);
/* Logs the pairs that expire. */
void pairs_remind(struct pairs *pairs, struct log *log);
/* The call first_end() of struct tls_engine_ops in tls/engine.h. */
int64_t pairs_first_end(struct pairs *pairs, uint32_t *file);

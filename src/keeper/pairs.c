/* SPDX-License-Identifier: BSD-2-Clause */
/* The pairs of all profiles: see pairs.h. */
#include "keeper/pairs.h"

#include "keeper/expiry.h"
#include "keeper/pair_load.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a state: the walk that tries all, or a walk at once, was there. */
#define PAIR_TRIED 2
#define PAIR_VISITED 4

/* ---- Walks ---- */

static void mark_walk(struct pairs *pairs, struct pairs_walk *walk, uint8_t mark)
{
    *walk = (struct pairs_walk) { .runs = true, .mark = mark };
    for (uint32_t i = 0; i < pairs->store.pair_n; i++)
        pairs->states[i] &= (uint8_t)~mark;
}

void pairs_walk_begin(struct pairs *pairs, struct pairs_walk *walk)
{
    mark_walk(pairs, walk, PAIR_VISITED);
}

struct pair_place pairs_walk_next(struct pairs *pairs, struct pairs_walk *walk)
{
    const struct tls_profiles *profiles = pairs->files->profiles;

    for (; walk->profile < profiles->n; walk->profile++, walk->pair = 0) {
        const struct tls_profile *profile = &profiles->list[walk->profile];

        while (walk->pair < profile->pair_n) {
            const struct tls_pair *of = &profile->pairs[walk->pair++];
            uint8_t *state = &pairs->states[of->number];

            assert(of->number < pairs->store.pair_n);
            if ((*state & walk->mark) != 0)
                continue;
            *state |= walk->mark;
            return (struct pair_place) { .profile = profile, .of = of };
        }
    }
    walk->runs = false;
    return (struct pair_place) { NULL, NULL };
}

/* ---- Begin and end ---- */

/* Names all pairs by the paths of their files. */
static void name_pairs(struct pairs *pairs)
{
    const struct tls_file *files = pairs->files->profiles->files;
    struct pairs_walk walk;
    struct pair_place place;

    pairs_walk_begin(pairs, &walk);
    while ((place = pairs_walk_next(pairs, &walk)).of != NULL) {
        const char *certificate = files[place.of->certificate].path,
                   *key = files[place.of->key].path;
        uint8_t digests[2][32], name[PAIR_NAME];

        pem_digest(certificate, strlen(certificate), digests[0], sizeof(digests[0]));
        pem_digest(key, strlen(key), digests[1], sizeof(digests[1]));
        pem_digest(digests, sizeof(digests), name, sizeof(name));
        pair_store_name(&pairs->store, place.of->number, name);
    }
}

/* Opens the store that is shared, or one of the process's own. */
static int open_store(struct pairs *pairs)
{
    struct tls_files *files = pairs->files;
    uint32_t n = files->profiles->pair_n;

    if (pair_store_open(&pairs->store, files->pairs, n) == 0)
        return 0;
    return pair_memory_reserve(&pairs->own, n) == 0 ? pair_store_open(&pairs->store, pairs->own, n)
                                                    : -1;
}

int pairs_open(struct pairs *pairs, struct tls_files *files, struct log *log)
{
    assert(pairs->take != NULL);
    pairs->log = log;
    pairs->files = files;
    pairs->pem = (struct pem_files) { .opener = files, .profiles = files->profiles, .outcome = "" };
    pair_cache_init(&pairs->cache, PAIRS_CACHED);
    LIST_INIT(&pairs->failures);
    pairs->states = calloc((size_t)files->profiles->pair_n + 1, 1);
    if (pairs->states == NULL || open_store(pairs) == -1) {
        log_write(log, LEVEL_EMERG, errno, "no memory for certificates");
        return -1;
    }
    pairs->writes = pairs->own.p != NULL || !files->quiet;
    if (pairs->own.p == NULL && pairs->writes) {
        name_pairs(pairs);
        pair_store_adopt(&pairs->store, &files->former_pairs);
    }
    return 0;
}

void pairs_close(struct pairs *pairs)
{
    if (pairs->states != NULL) {
        pair_load_cancel(pairs);
        pair_load_forget(pairs);
    }
    pair_cache_done(&pairs->cache);
    free(pairs->states);
    if (pairs->own.p != NULL)
        explicit_bzero(pairs->own.p, pair_store_used(&pairs->store));
    pair_memory_release(&pairs->own);
}

/* ---- What handshakes need ---- */

/* Returns a pair of the latest version that is known; NULL: the files have to be read. */
static struct pair_cached *find_parsed(struct pairs *pairs, const struct tls_pair *of)
{
    struct pair_cached *cached = pair_cache_find(&pairs->cache, of, sizeof(*of));
    uint32_t version = pair_store_version(&pairs->store, of->number);
    struct pair pair = { .leaf = NULL };

    if (cached != NULL && (cached->version == version || (version & 1) != 0))
        return cached;
    if (version != 0 && pair_get(&pair, &pairs->store, of->number, &version) == 0)
        return pair_cache_put(&pairs->cache, of, sizeof(*of), version, &pair);
    return NULL;
}

enum pairs_found pairs_find(struct pairs *pairs, const struct tls_profile *profile,
    const struct tls_pair *of, const struct pair **found)
{
    const struct pair_place place = { .profile = profile, .of = of };
    struct pair_cached *cached = find_parsed(pairs, of);
    struct pair_load *load = &pairs->load;

    if (cached == NULL && load->place.of != NULL) {
        if (load->place.of->number == of->number)
            load->asked = true;
        else if (pairs->wanted.of == NULL)
            pairs->wanted = place;
        return PAIRS_LATER;
    }
    if (cached == NULL && pair_load_failure(pairs, of->number) == NULL) {
        if (!pair_load_begin(pairs, place, true, false))
            return PAIRS_LATER;
        cached = pair_cache_find(&pairs->cache, of, sizeof(*of));
    }
    if (cached == NULL)
        return PAIRS_BAD;
    *found = &cached->pair;
    return PAIRS_FOUND;
}

/* ---- What is tried ---- */

int pairs_try(struct pairs *pairs, unsigned most)
{
    struct pairs_walk walk;
    struct pair_place place;
    int status = 0;

    pairs->starts = pairs->files->want == NULL;
    pairs_walk_begin(pairs, &walk);
    for (unsigned i = 0; i < most && (place = pairs_walk_next(pairs, &walk)).of != NULL; i++) {
        pair_load_begin(pairs, place, false, true);
        if (pairs->starts && pair_load_failure(pairs, place.of->number) != NULL)
            status = -1; /* goes on, for all mistakes to be logged */
    }
    pairs->starts = false;
    return status;
}

/* Whether the pair is looked at, when files may have changed. */
static bool is_due(const struct pairs *pairs, const struct tls_pair *of)
{
    return pairs->files->want != NULL || pair_store_version(&pairs->store, of->number) != 0 ||
           pair_load_failure(pairs, of->number) != NULL;
}

/* Begins to read pairs, until a file is awaited. */
static void go_on_walking(struct pairs *pairs)
{
    struct pair_place place;

    while (pairs->load.place.of == NULL) {
        bool asked = pairs->wanted.of != NULL;

        if (!asked && !pairs->walk.runs && !pairs->walk.again)
            return;
        if (!asked && !pairs->walk.runs)
            mark_walk(pairs, &pairs->walk, PAIR_TRIED);
        place = asked ? pairs->wanted : pairs_walk_next(pairs, &pairs->walk);
        pairs->wanted = (struct pair_place) { NULL, NULL };
        if (place.of != NULL && (asked || is_due(pairs, place.of)))
            pair_load_begin(pairs, place, asked, false);
    }
}

void pairs_refresh(struct pairs *pairs)
{
    if (!pairs->writes) { /* the store of another engine tells good certificates */
        pair_load_forget(pairs);
        return;
    }
    pairs->walk.again = true;
    go_on_walking(pairs);
}

void pairs_opened(struct pairs *pairs, int fd, int error)
{
    if (pair_load_take(pairs, fd, error))
        go_on_walking(pairs);
}

void pairs_remind(struct pairs *pairs, struct log *log)
{
    const struct tls_file *files = pairs->files->profiles->files;
    struct pairs_walk walk;
    struct pair_place place;
    struct pair_facts facts;

    pairs_walk_begin(pairs, &walk);
    while ((place = pairs_walk_next(pairs, &walk)).of != NULL)
        if (pair_store_peek(&pairs->store, place.of->number, &facts, sizeof(facts)))
            expiry_remind(files[place.of->certificate].path, facts.expiry, log);
}

/* Looks at all records once a trial of all pairs is over, and not after each of its pairs. */
int64_t pairs_first_end(struct pairs *pairs, uint32_t *file)
{
    struct pairs_walk walk;
    struct pair_place place;
    struct pair_facts facts;

    if (!pairs->first_end_is_known && !pairs->walk.runs) {
        pairs->first_end_is_known = true;
        pairs->first_end = 0;
        pairs_walk_begin(pairs, &walk);
        while ((place = pairs_walk_next(pairs, &walk)).of != NULL) {
            if (!pair_store_peek(&pairs->store, place.of->number, &facts, sizeof(facts)) ||
                (pairs->first_end != 0 && facts.expiry >= pairs->first_end))
                continue;
            pairs->first_end = facts.expiry;
            pairs->first_file = place.of->certificate;
        }
    }
    *file = pairs->first_file;
    return pairs->first_end;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads pairs by names: see named_pairs.h. A cache has nginx's times: a pair that was not used for
 * `inactive` is forgotten, and one that was found equal to its files before `valid` is compared
 * with them again, and read if they differ. */
#include "keeper/named_pairs.h"

#include "keeper/named_file.h"
#include "keeper/reason.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest path in a reason. */
#define PATH_SHOWN 256

static const char *const kinds[] = {
    [PAIR_CERTIFICATE] = "certificate",
    [PAIR_KEY] = "certificate key",
};

/* The files of a pair that is read. */
struct named_reading {
    struct pem_file pems[PAIR_PASSWORDS];
    int fds[PAIR_PASSWORDS];
    uint64_t identities[PAIR_PASSWORDS];
    char paths[PAIR_PASSWORDS][NAMED_PATH];
    char *text; /* of the caller's, of TLS_TEXT */
};

/* ---- Begin and end ---- */

static bool has_passwords(const struct tls_profile *profile)
{
    return profile->named.n > 0 && profile->passwords != TLS_NO_FILE;
}

int named_pairs_open(struct named_pairs *pairs, struct pem_files *pem, struct log *log)
{
    const struct tls_profiles *profiles = pem->profiles;
    int status = 0;

    pairs->pem = pem;
    pairs->passwords = calloc(profiles->n + (size_t)1, sizeof(*pairs->passwords));
    pairs->caches = calloc(profiles->cache_n + (size_t)1, sizeof(*pairs->caches));
    if (pairs->passwords == NULL || pairs->caches == NULL) {
        log_write(log, LEVEL_EMERG, errno, "no memory for certificates");
        return -1;
    }
    for (unsigned i = 0; i < profiles->cache_n; i++)
        pair_cache_init(&pairs->caches[i], 0);
    for (unsigned i = 0; i < profiles->n; i++) {
        const struct tls_profile *profile = &profiles->list[i];

        if (profile->named.cache != NULL)
            pairs->caches[profile->named.cache->index].most = profile->named.cache->max;
        pairs->passwords[i] = (struct pem_file) {
            .files = pem, .log = log, .what = "passwords", .index = profile->passwords
        };
        if (has_passwords(profile) && pem_file_open(&pairs->passwords[i]) == -1)
            status = -1; /* goes on, for all mistakes to be logged */
    }
    return status;
}

void named_pairs_close(struct named_pairs *pairs)
{
    const struct tls_profiles *profiles = pairs->pem != NULL ? pairs->pem->profiles : NULL;

    pair_free(&pairs->read);
    for (unsigned i = 0; pairs->caches != NULL && i < profiles->cache_n; i++)
        pair_cache_done(&pairs->caches[i]);
    for (unsigned i = 0; pairs->passwords != NULL && i < profiles->n; i++)
        pem_file_close(&pairs->passwords[i]);
    free(pairs->caches);
    free(pairs->passwords);
}

void named_pairs_refresh(struct named_pairs *pairs, struct log *log)
{
    for (unsigned i = 0; i < pairs->pem->profiles->n; i++) {
        struct pem_file fresh = pairs->passwords[i];

        fresh.p = NULL;
        fresh.bio = NULL;
        fresh.log = log;
        if (!has_passwords(&pairs->pem->profiles->list[i]) || pem_file_open(&fresh) == -1)
            continue;
        pem_file_close(&pairs->passwords[i]);
        pairs->passwords[i] = fresh;
    }
}

/* ---- A pair ---- */

/* Says why a file of the pair is of no use. */
static void explain_named(const struct named_reading *reading, unsigned i, const char *reason)
{
    snprintf(reading->text, TLS_TEXT, "cannot load %s \"%.*s%s\": %s", kinds[i], PATH_SHOWN,
        reading->paths[i], strlen(reading->paths[i]) > PATH_SHOWN ? "..." : "", reason);
}

/* Opens both files, with the text's names behind one another; false: the text says why not. */
static bool open_named(
    struct named_reading *reading, const struct tls_profile *profile, unsigned i, const char *names)
{
    char reason[NAMED_REASON];

    for (unsigned file = 0; file < PAIR_PASSWORDS; file++, names += strlen(names) + 1) {
        reading->fds[file] = named_file_open(
            profile->named.directories[2 * i + file], names, reading->paths[file], reason);
        if (reading->fds[file] == -1) {
            explain_named(reading, file, reason);
            return false;
        }
        reading->identities[file] = pem_identify(reading->fds[file]);
    }
    return true;
}

/* Reads and parses the open files; false: one is bad, and the text says why. */
static bool parse_named(struct named_reading *reading, const char *passwords, struct pair *pair)
{
    char reason[NAMED_REASON + TLS_TEXT];

    ERR_clear_error();
    for (unsigned file = 0; file < PAIR_PASSWORDS; file++) {
        struct pem_file *pem = &reading->pems[file];
        const char *failed = pem_file_read(pem, reading->fds[file]);

        if (failed != NULL) {
            snprintf(reason, sizeof(reason), "%s failed (%d: %s)", failed, errno, strerror(errno));
            explain_named(reading, file, reason);
            return false;
        }
        failed = file == PAIR_KEY ? pair_read_key(pair, pem->bio, passwords)
                                  : pair_read_certificate(pair, pem->bio);
        if (failed == NULL && file == PAIR_KEY &&
            X509_check_private_key(pair->leaf, pair->key) != 1)
            failed = "X509_check_private_key()";
        if (failed != NULL) {
            explain_named(reading, file, reason_take(reason, sizeof(reason), failed));
            return false;
        }
    }
    return true;
}

static void close_named(struct named_reading *reading)
{
    for (unsigned file = 0; file < PAIR_PASSWORDS; file++) {
        pem_file_close(&reading->pems[file]);
        descriptor_close(reading->fds[file]);
    }
}

/* ---- The cache ---- */

/* The key of a pair: its directories, which are texts of the configuration, and its names. */
struct named_key {
    const char *directories[PAIR_PASSWORDS];
    uint64_t passwords; /* a file */
    char names[TLS_PATHS_MOST];
};

static size_t make_key(
    struct named_key *key, const struct tls_profile *profile, unsigned i, const char *names)
{
    size_t n = strlen(names) + 1;

    n += strlen(names + n) + 1;
    assert(n <= sizeof(key->names));
    for (unsigned file = 0; file < PAIR_PASSWORDS; file++)
        key->directories[file] = profile->named.directories[2 * i + file];
    key->passwords = profile->passwords;
    memcpy(key->names, names, n);
    return offsetof(struct named_key, names) + n;
}

/* Forgets the pairs that were not used for long. */
static void forget_inactive(struct pair_cache *cache, const struct tls_cache *rules, uint64_t now)
{
    struct pair_cached *oldest;

    while ((oldest = pair_cache_oldest(cache)) != NULL &&
           now - oldest->used_ms > (uint64_t)rules->inactive)
        pair_cache_drop(cache, oldest->key, oldest->key_n);
}

/* Whether the open files are those that the cached pair was read from. */
static bool is_cached_equal(
    const struct pair_cached *cached, const uint64_t identities[PAIR_PASSWORDS])
{
    return cached != NULL && identities[PAIR_CERTIFICATE] != 0 && identities[PAIR_KEY] != 0 &&
           memcmp(cached->identities, identities, sizeof(cached->identities)) == 0;
}

/* ---- What handshakes need ---- */

/* Opens both files, and reads them, unless the cached pair was read from the same; NULL: they are
 * bad, and the text says why. */
static const struct pair *load_named(struct named_pairs *pairs, struct named_reading *reading,
    const struct tls_profile *profile, unsigned i, const char *names,
    const struct pair_cached *cached)
{
    const char *passwords = pairs->passwords[profile->index].p;
    const struct pair *found = NULL;

    pair_free(&pairs->read);
    if (open_named(reading, profile, i, names)) {
        if (is_cached_equal(cached, reading->identities))
            found = &cached->pair;
        else if (parse_named(reading, passwords != NULL ? passwords : "", &pairs->read))
            found = &pairs->read;
    }
    close_named(reading);
    return found;
}

const struct pair *named_pairs_find(struct named_pairs *pairs, const struct tls_profile *profile,
    unsigned i, const char *names, uint64_t now_ms, char text[TLS_TEXT])
{
    const struct tls_cache *rules = profile->named.cache;
    struct pair_cache *cache = rules != NULL ? &pairs->caches[rules->index] : NULL;
    struct named_reading reading = { .fds = { -1, -1 }, .text = text };
    struct pair_cached *cached = NULL;
    const struct pair *found;
    struct named_key key;
    size_t key_n = make_key(&key, profile, i, names);

    assert(2 * i < profile->named.n);
    if (cache != NULL) {
        forget_inactive(cache, rules, now_ms);
        cached = pair_cache_find(cache, &key, key_n);
    }
    if (cached == NULL || now_ms - cached->checked_ms > (uint64_t)rules->valid) {
        found = load_named(pairs, &reading, profile, i, names, cached);
        if (cache == NULL)
            return found;
        if (found == &pairs->read)
            cached = pair_cache_put(cache, &key, key_n, 0, &pairs->read);
        else if (found == NULL)
            pair_cache_drop(cache, &key, key_n);
        if (cached == NULL || found == NULL) {
            if (found != NULL)
                snprintf(text, TLS_TEXT, "no memory for a certificate");
            return NULL;
        }
        memcpy(cached->identities, reading.identities, sizeof(cached->identities));
        cached->checked_ms = now_ms;
    }
    cached->used_ms = now_ms;
    return &cached->pair;
}

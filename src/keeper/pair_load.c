/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a pair: see pair_load.h. */
#include "keeper/pair_load.h"

#include "keeper/expiry.h"
#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIR_REFUSED 1 /* in a state: there is a failure */

static const char *const file_words[PAIR_FILES] = {
    [PAIR_CERTIFICATE] = "certificate",
    [PAIR_KEY] = "certificate key",
    [PAIR_PASSWORDS] = "passwords",
};

/* A pair that is read. */
struct reading {
    struct pem_file pems[PAIR_FILES];
    struct pair pair;
    struct pair_facts facts, before;
    bool had; /* the store has the pair, with the facts before */
    char mistake[PEM_MISTAKE];
};

/* Returns the index of a file of the pair under way; TLS_NO_FILE: there is none to be opened. */
static uint32_t load_index(const struct pair_load *load, unsigned i)
{
    const struct tls_pair *of = load->place.of;

    if (i == PAIR_PASSWORDS)
        return load->place.profile->passwords;
    if (i == PAIR_KEY)
        return of->key != of->certificate ? of->key : TLS_NO_FILE;
    return of->certificate;
}

struct pair_failure *pair_load_failure(const struct pairs *pairs, uint32_t number)
{
    struct pair_failure *failure;

    if ((pairs->states[number] & PAIR_REFUSED) == 0)
        return NULL;
    LIST_FOREACH (failure, &pairs->failures, link)
        if (failure->number == number)
            break;
    assert(failure != NULL);
    return failure;
}

static void drop_failure(struct pairs *pairs, struct pair_failure *failure)
{
    if (failure == NULL)
        return;
    pairs->states[failure->number] &= (uint8_t)~PAIR_REFUSED;
    LIST_REMOVE(failure, link);
    free(failure);
}

void pair_load_forget(struct pairs *pairs)
{
    while (!LIST_EMPTY(&pairs->failures))
        drop_failure(pairs, LIST_FIRST(&pairs->failures));
}

/* Notes and logs why the pair is refused. */
static void refuse_pair(struct pairs *pairs, const struct reading *reading)
{
    uint32_t number = pairs->load.place.of->number;
    size_t size = strlen(reading->mistake) + 1;
    struct pair_failure *failure = malloc(sizeof(*failure) + size);
    enum log_level level = pairs->starts         ? LEVEL_EMERG
                           : pairs->files->quiet ? LEVEL_INFO
                                                 : LEVEL_ERROR;

    log_write(pairs->log, level, 0, "%s%s", reading->mistake,
        reading->had    ? "; what was loaded before is used"
        : pairs->starts ? ""
                        : "; until the file changes nothing is served with it");
    drop_failure(pairs, pair_load_failure(pairs, number));
    if (failure == NULL)
        return;
    *failure = (struct pair_failure) { .number = number, .at = (int64_t)time(NULL) };
    memcpy(failure->identities, reading->facts.identities, sizeof(failure->identities));
    memcpy(failure->text, reading->mistake, size);
    LIST_INSERT_HEAD(&pairs->failures, failure, link);
    pairs->states[number] |= PAIR_REFUSED;
}

static void explain_mistake(struct reading *reading, unsigned i, int error, const char *call)
{
    pem_file_explain(&reading->pems[i], error, call, reading->mistake, sizeof(reading->mistake));
}

/* Reads a file that was opened, or says why it was not; false after a mistake. */
static bool read_file(struct pairs *pairs, struct reading *reading, unsigned i)
{
    const struct pair_load *load = &pairs->load;
    struct pem_file *pem = &reading->pems[i];
    const char *failed = "open()";

    pem->index = i == PAIR_KEY ? load->place.of->key : load_index(load, i);
    if (load->fds[i] != -1)
        failed = pem_file_read(pem, load->fds[i]);
    else
        errno = load->errors[i];
    if (failed != NULL)
        explain_mistake(reading, i, errno, failed);
    return failed == NULL;
}

/* Reads the key, by the passwords of a file, or where the certificate is; false after a mistake. */
static bool read_pair_key(struct pairs *pairs, struct reading *reading)
{
    struct pem_file *pem = &reading->pems[PAIR_KEY];
    const char *passwords = "", *failed;

    if (pairs->load.place.profile->passwords != TLS_NO_FILE) {
        if (!read_file(pairs, reading, PAIR_PASSWORDS))
            return false;
        passwords = reading->pems[PAIR_PASSWORDS].p;
    }
    if (load_index(&pairs->load, PAIR_KEY) == TLS_NO_FILE) {
        pem = &reading->pems[PAIR_CERTIFICATE];
        (void)BIO_reset(pem->bio);
        pem->what = file_words[PAIR_KEY];
        memcpy(
            reading->facts.digests[PAIR_KEY], reading->facts.digests[PAIR_CERTIFICATE], PEM_DIGEST);
    } else {
        if (!read_file(pairs, reading, PAIR_KEY))
            return false;
        pem_digest(pem->p, pem->n, reading->facts.digests[PAIR_KEY], PEM_DIGEST);
    }
    failed = pair_read_key(&reading->pair, pem->bio, passwords);
    if (failed != NULL)
        pem_file_explain(pem, 0, failed, reading->mistake, sizeof(reading->mistake));
    return failed == NULL;
}

/* Reads the files, and tries what they have; false after a mistake. */
static bool read_pair(struct pairs *pairs, struct reading *reading)
{
    struct pem_file *certificate = &reading->pems[PAIR_CERTIFICATE];
    const struct pair_place *place = &pairs->load.place;
    const char *failed;
    bool of_key = false;

    if (!read_file(pairs, reading, PAIR_CERTIFICATE))
        return false;
    pem_digest(
        certificate->p, certificate->n, reading->facts.digests[PAIR_CERTIFICATE], PEM_DIGEST);
    failed = pair_read_certificate(&reading->pair, certificate->bio);
    if (failed != NULL)
        explain_mistake(reading, PAIR_CERTIFICATE, 0, failed);
    if (failed != NULL || !read_pair_key(pairs, reading))
        return false;
    failed = pairs->take(pairs->host, place->profile, &reading->pair, &of_key);
    if (failed == NULL)
        return true;
    reading->pems[PAIR_KEY].index = place->of->key;
    reading->pems[PAIR_KEY].of = pairs->files->profiles->files[place->of->certificate].path;
    certificate->what = file_words[PAIR_CERTIFICATE];
    explain_mistake(reading, of_key ? PAIR_KEY : PAIR_CERTIFICATE, 0, failed);
    return false;
}

/* Logs what a good pair means to an operator. */
static void report_pair(struct pairs *pairs, const struct reading *reading)
{
    bool quiet = pairs->files->quiet;
    const char *path = pairs->files->profiles->files[pairs->load.place.of->certificate].path;
    bool replaced = reading->had && memcmp(reading->before.digests[PAIR_CERTIFICATE],
                                        reading->facts.digests[PAIR_CERTIFICATE], PEM_DIGEST) != 0;
    char date[EXPIRY_TEXT];

    if (replaced)
        log_write(pairs->log, quiet ? LEVEL_INFO : LEVEL_NOTICE, 0,
            "certificate \"%s\" was replaced, valid until %s", path,
            expiry_text(reading->facts.expiry, date));
    if ((replaced || !reading->had) && !quiet && pairs->writes)
        expiry_remind(path, reading->facts.expiry, pairs->log);
}

/* Takes a good pair into use. */
static void adopt_pair(struct pairs *pairs, struct reading *reading)
{
    struct pair_load *load = &pairs->load;
    const struct tls_pair *of = load->place.of;
    struct pair_facts *facts = &reading->facts;
    bool differs = reading->had &&
                   memcmp(facts->digests, reading->before.digests, sizeof(facts->digests)) != 0;

    facts->expiry = expiry_of(reading->pair.leaf);
    facts->swapped = differs ? (int64_t)time(NULL) : reading->had ? reading->before.swapped : 0;
    if (pairs->writes) {
        pair_put(&reading->pair, facts, &pairs->store, of->number);
        load->version = pair_store_version(&pairs->store, of->number);
    }
    pairs->first_end_is_known = false;
    report_pair(pairs, reading);
    drop_failure(pairs, pair_load_failure(pairs, of->number));
    if (load->asked || pair_cache_find(&pairs->cache, of, sizeof(*of)) != NULL)
        pair_cache_put(&pairs->cache, of, sizeof(*of), load->version, &reading->pair);
}

/* Sets the identities of the files; returns whether the files are the ones read last. */
static bool are_files_known(struct pairs *pairs, struct reading *reading)
{
    const struct pair_load *load = &pairs->load;
    uint64_t *identities = reading->facts.identities;
    const struct pair_failure *failure = pair_load_failure(pairs, load->place.of->number);
    const uint64_t *known = failure != NULL ? failure->identities
                            : reading->had  ? reading->before.identities
                                            : NULL;
    bool same = known != NULL && (failure != NULL || !load->asked);

    for (unsigned i = 0; i < PAIR_FILES; i++) {
        bool is_file = load_index(load, i) != TLS_NO_FILE;

        if (is_file)
            identities[i] =
                load->fds[i] != -1 ? pem_identify(load->fds[i]) : (uint64_t)load->errors[i];
        same = same && identities[i] == known[i] && (identities[i] != 0 || !is_file);
    }
    return same;
}

/* Ends the reading, whose files are open, or could not be opened. */
static void finish_load(struct pairs *pairs)
{
    struct pair_load *load = &pairs->load;
    struct reading reading = { .had = false };

    reading.had = pair_store_peek(
        &pairs->store, load->place.of->number, &reading.before, sizeof(reading.before));
    for (unsigned i = 0; i < PAIR_FILES; i++)
        reading.pems[i] =
            (struct pem_file) { .files = &pairs->pem, .log = pairs->log, .what = file_words[i] };
    ERR_clear_error();
    if (!are_files_known(pairs, &reading)) {
        if (read_pair(pairs, &reading))
            adopt_pair(pairs, &reading);
        else
            refuse_pair(pairs, &reading);
    }
    pair_free(&reading.pair);
    for (unsigned i = 0; i < PAIR_FILES; i++)
        pem_file_close(&reading.pems[i]);
    pair_load_cancel(pairs);
}

/* Opens the next files, as far as that is possible now; whether the reading is over. */
static bool go_on_loading(struct pairs *pairs)
{
    struct pair_load *load = &pairs->load;
    struct tls_files *files = pairs->files;

    for (; load->next < PAIR_FILES; load->next++) {
        uint32_t file = load_index(load, load->next);

        if (file == TLS_NO_FILE)
            continue;
        if (files->want != NULL && !load->at_once) {
            files->want(files, file);
            return false;
        }
        load->fds[load->next] = files->open(files, file);
        load->errors[load->next] = load->fds[load->next] == -1 ? errno : 0;
    }
    finish_load(pairs);
    return true;
}

bool pair_load_begin(struct pairs *pairs, struct pair_place place, bool asked, bool at_once)
{
    assert(pairs->load.place.of == NULL);
    pairs->load = (struct pair_load) {
        .place = place,
        .asked = asked,
        .at_once = at_once,
        .version = pair_store_version(&pairs->store, place.of->number),
        .fds = { -1, -1, -1 },
    };
    return go_on_loading(pairs);
}

bool pair_load_take(struct pairs *pairs, int fd, int error)
{
    struct pair_load *load = &pairs->load;

    assert(load->place.of != NULL && !load->at_once && load->next < PAIR_FILES);
    load->fds[load->next] = fd;
    load->errors[load->next] = error;
    load->next++;
    return go_on_loading(pairs);
}

void pair_load_cancel(struct pairs *pairs)
{
    struct pair_load *load = &pairs->load;

    for (unsigned i = 0; load->place.of != NULL && i < PAIR_FILES; i++)
        descriptor_close(load->fds[i]);
    *load = (struct pair_load) { .place = { NULL, NULL } };
}

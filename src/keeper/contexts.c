/* SPDX-License-Identifier: BSD-2-Clause */
/* The contexts of all profiles: see contexts.h. */
#include "keeper/contexts.h"

#include "os/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Files of a profile's settings, before keys of tickets and responses of OCSP. */
enum { FILE_CLIENT_CA, FILE_TRUSTED, FILE_CRL, FILE_DHPARAM, CONTEXT_FILES };

/* Returns one of the files of a profile's settings; TLS_NO_FILE: none. */
static uint32_t settings_file(const struct tls_profile *profile, unsigned i)
{
    const uint32_t files[CONTEXT_FILES] = {
        [FILE_CLIENT_CA] = profile->client_ca,
        [FILE_TRUSTED] = profile->trusted,
        [FILE_CRL] = profile->crl,
        [FILE_DHPARAM] = profile->dhparam,
    };

    if (i < CONTEXT_FILES)
        return files[i];
    i -= CONTEXT_FILES;
    return i < profile->ticket_key_n ? profile->ticket_keys[i]
                                     : profile->stapling_files[i - profile->ticket_key_n];
}

static unsigned settings_file_n(const struct tls_profile *profile)
{
    return CONTEXT_FILES + profile->ticket_key_n + profile->stapling_file_n;
}

/* ---- Profiles with equal settings ---- */

static bool are_texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool are_commands_equal(const struct tls_profile *a, const struct tls_profile *b)
{
    if (a->command_n != b->command_n)
        return false;
    for (unsigned i = 0; i < a->command_n && a->commands != b->commands; i++)
        if (strcmp(a->commands[i].name, b->commands[i].name) != 0 ||
            strcmp(a->commands[i].value, b->commands[i].value) != 0)
            return false;
    return true;
}

/* Whether two profiles differ in nothing but their pairs. */
static bool are_settings_equal(const struct tls_profile *a, const struct tls_profile *b)
{
    if (a->role != b->role || a->sends_name != b->sends_name || a->versions != b->versions ||
        a->prefer_server_ciphers != b->prefer_server_ciphers || a->reject != b->reject ||
        a->alpn_n != b->alpn_n || a->verify != b->verify || a->verify_depth != b->verify_depth ||
        a->tickets != b->tickets || a->ticket_key_n != b->ticket_key_n ||
        (a->key_log == NULL ? b->key_log != NULL
                            : b->key_log == NULL || *a->key_log != *b->key_log) ||
        a->stapling_file_n != b->stapling_file_n || a->session_timeout != b->session_timeout)
        return false;
    for (unsigned i = 0; i < settings_file_n(a); i++)
        if (settings_file(a, i) != settings_file(b, i))
            return false;
    return are_texts_equal(a->ciphers, b->ciphers) && are_texts_equal(a->groups, b->groups) &&
           are_texts_equal(a->challenges, b->challenges) &&
           (a->alpn_n == 0 || memcmp(a->alpn, b->alpn, a->alpn_n) == 0) && are_commands_equal(a, b);
}

/* Returns the index of the context with the profile's settings; contexts->n: there is none. */
static unsigned find_settings(const struct contexts *contexts, const struct tls_profile *profile)
{
    unsigned i = 0;

    while (i < contexts->n && !are_settings_equal(contexts->list[i].profile, profile))
        i++;
    return i;
}

const struct context *contexts_find(const struct contexts *contexts, uint32_t profile)
{
    assert(profile < contexts->files.profiles->n);
    return &contexts->list[contexts->of_profiles[profile]];
}

/* ---- Begin and end ---- */

/* Notes that a context has the file as it was read last, and logs a replaced file. */
static void adopt_file(struct contexts *contexts, uint32_t file, struct log *log)
{
    static const uint8_t none[PEM_DIGEST];
    struct contexts_file *of_file = &contexts->of_files[file];
    const uint8_t *read = contexts->files.seen[file].digest;

    if (memcmp(of_file->digest, none, sizeof(none)) != 0 &&
        memcmp(of_file->digest, read, sizeof(none)) != 0)
        log_write(log, contexts->files.opener->quiet ? LEVEL_INFO : LEVEL_NOTICE, 0,
            "file \"%s\" was replaced", contexts->files.profiles->files[file].path);
    memcpy(of_file->digest, read, sizeof(none));
}

/* Makes the context of a profile in zeroed memory; -1 after a line of each mistake. */
static int make_context(struct contexts *contexts, struct context *context,
    const struct tls_profile *profile, struct log *log)
{
    if (context_create(context, contexts->lib, profile, &contexts->files, contexts->ring, log) < 0)
        return -1;
    for (unsigned i = 0; i < settings_file_n(profile); i++)
        if (settings_file(profile, i) != TLS_NO_FILE)
            adopt_file(contexts, settings_file(profile, i), log);
    return 0;
}

/* The pairs' trial of a pair, by a handshake of the profile. */
static const char *take_pair(
    void *host, const struct tls_profile *profile, const struct pair *pair, bool *of_key)
{
    struct contexts *contexts = host;
    const struct libssl *lib = contexts->lib;
    const struct context *context = contexts_find(contexts, profile->index);
    SSL *ssl = context->ctx != NULL ? lib->SSL_new(context->ctx) : NULL;
    const char *failed = "SSL_new()";

    if (ssl == NULL)
        return failed;
    failed = context_use_certificate(lib, ssl, pair);
    *of_key = failed == NULL;
    if (failed == NULL)
        failed = context_use_key(lib, ssl, pair);
    lib->SSL_free(ssl);
    return failed;
}

/* Makes a context for each of the different settings; -1 after a line of each mistake. */
static int make_all_contexts(struct contexts *contexts, struct log *log)
{
    const struct tls_profiles *profiles = contexts->files.profiles;
    int status = 0;

    for (uint32_t i = 0; i < profiles->n; i++) {
        unsigned at = find_settings(contexts, &profiles->list[i]);

        contexts->of_profiles[i] = at;
        if (at < contexts->n)
            continue;
        contexts->n++;
        if (make_context(contexts, &contexts->list[at], &profiles->list[i], log) < 0)
            status = -1; /* goes on, for all mistakes to be logged */
    }
    return status;
}

/* How many files there is memory for; without profiles the contexts were not made. */
static size_t room_for_files(const struct tls_profiles *profiles)
{
    return profiles != NULL ? profiles->file_n + (size_t)1 : 0;
}

int contexts_create(struct contexts *contexts, const struct libssl *lib, struct tls_files *files,
    const struct ticket_ring *ring, struct log *log)
{
    const struct tls_profiles *profiles = files->profiles;
    size_t file_n = room_for_files(profiles), n = profiles->n + (size_t)1;
    int status;

    contexts->lib = lib;
    contexts->ring = ring;
    contexts->files = (struct pem_files) {
        .opener = files,
        .profiles = profiles,
        /* thousands of files of pairs are never noted: untouched pages cost nothing */
        .seen = os_memory_reserve(file_n * sizeof(*contexts->files.seen)),
        .level = LEVEL_EMERG,
        .outcome = "",
    };
    contexts->of_files = os_memory_reserve(file_n * sizeof(*contexts->of_files));
    contexts->list = calloc(n, sizeof(*contexts->list));
    contexts->of_profiles = calloc(n, sizeof(*contexts->of_profiles));
    if (contexts->files.seen == NULL || contexts->of_files == NULL || contexts->list == NULL ||
        contexts->of_profiles == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the certificates");
        return -1;
    }
    contexts->pairs.take = take_pair;
    contexts->pairs.host = contexts;
    if (pairs_open(&contexts->pairs, files, log) == -1)
        return -1;
    status = make_all_contexts(contexts, log);
    return pairs_try(&contexts->pairs, files->tried) == 0 ? status : -1;
}

void contexts_destroy(struct contexts *contexts)
{
    size_t file_n = room_for_files(contexts->files.profiles);

    if (contexts->pairs.files != NULL)
        pairs_close(&contexts->pairs);
    for (unsigned i = 0; i < contexts->n; i++)
        context_destroy(&contexts->list[i]);
    free(contexts->of_profiles);
    free(contexts->list);
    if (contexts->of_files != NULL)
        munmap(contexts->of_files, file_n * sizeof(*contexts->of_files));
    if (contexts->files.seen != NULL)
        munmap(contexts->files.seen, file_n * sizeof(*contexts->files.seen));
}

/* ---- Changed files ---- */

/* Whether a file of the profile's settings has changed since it was read last. */
static bool have_settings_changed(struct contexts *contexts, const struct tls_profile *profile)
{
    bool any = false;

    for (unsigned i = 0; i < settings_file_n(profile); i++) {
        uint32_t file = settings_file(profile, i);
        struct contexts_file *of_file = file != TLS_NO_FILE ? &contexts->of_files[file] : NULL;

        if (of_file == NULL)
            continue;
        if (!of_file->looked)
            of_file->changed = pem_file_has_changed(&contexts->files, file);
        of_file->looked = true;
        any = any || of_file->changed;
    }
    return any;
}

/* Makes the next refresh look at the files again. */
static void forget_looks(struct contexts *contexts)
{
    for (unsigned n = 0; n < contexts->n; n++)
        for (unsigned i = 0; i < settings_file_n(contexts->list[n].profile); i++)
            if (settings_file(contexts->list[n].profile, i) != TLS_NO_FILE)
                contexts->of_files[settings_file(contexts->list[n].profile, i)].looked = false;
}

static void renew_context(struct contexts *contexts, struct context *context, struct log *log)
{
    struct context fresh = { .ctx = NULL };

    if (make_context(contexts, &fresh, context->profile, log) == 0)
        context_replace(context, &fresh);
    context_destroy(&fresh);
}

void contexts_refresh(struct contexts *contexts, struct log *log)
{
    contexts->files.level = contexts->files.opener->quiet ? LEVEL_INFO : LEVEL_ERROR;
    contexts->files.outcome = "; what was loaded before is used";
    for (unsigned i = 0; i < contexts->n; i++)
        if (have_settings_changed(contexts, contexts->list[i].profile))
            renew_context(contexts, &contexts->list[i], log);
    forget_looks(contexts);
    pairs_refresh(&contexts->pairs);
}

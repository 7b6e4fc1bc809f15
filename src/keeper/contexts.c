/* SPDX-License-Identifier: BSD-2-Clause */
/* The contexts of all profiles: see contexts.h. */
#include "keeper/contexts.h"

#include "keeper/expiry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *contexts_path(const struct contexts *contexts, uint32_t file)
{
    assert(file < contexts->files.profiles->file_n);
    return contexts->files.profiles->files[file].path;
}

/* Notes that a context has the file as it was read last; whether the file was replaced by that. */
static bool adopt_file(struct contexts *contexts, uint32_t file)
{
    static const uint8_t none[PEM_DIGEST];
    struct contexts_file *of_file = &contexts->of_files[file];
    const uint8_t *read = contexts->files.seen[file].digest;
    bool replaced = memcmp(of_file->digest, none, sizeof(none)) != 0 &&
                    memcmp(of_file->digest, read, sizeof(none)) != 0;

    memcpy(of_file->digest, read, sizeof(none));
    return replaced;
}

static void adopt_other(struct contexts *contexts, uint32_t file, struct log *log)
{
    if (file != TLS_NO_FILE && adopt_file(contexts, file))
        log_write(log, contexts->files.opener->quiet ? LEVEL_INFO : LEVEL_NOTICE, 0,
            "file \"%s\" was replaced", contexts_path(contexts, file));
}

static void adopt_certificate(
    struct contexts *contexts, struct certificates *certificates, uint32_t file, struct log *log)
{
    const struct certificate *certificate = certificates_find(certificates, file);
    struct contexts_file *of_file = &contexts->of_files[file];
    bool quiet = contexts->files.opener->quiet, first = of_file->expiry == 0;
    const char *path = contexts_path(contexts, file);
    char date[EXPIRY_TEXT];
    bool replaced = adopt_file(contexts, file);

    assert(certificate != NULL); /* a context has the certificate */
    of_file->expiry = expiry_of(certificate->leaf);
    if (replaced)
        log_write(log, quiet ? LEVEL_INFO : LEVEL_NOTICE, 0,
            "certificate \"%s\" was replaced, valid until %s", path,
            expiry_text(of_file->expiry, date));
    if ((first || replaced) && !quiet)
        expiry_remind(path, of_file->expiry, log);
}

/* Notes the files of a profile whose context has just been made. */
static void adopt_profile(struct contexts *contexts, const struct tls_profile *profile,
    struct certificates *certificates, struct log *log)
{
    for (unsigned i = 0; i < profile->pair_n; i++)
        adopt_certificate(contexts, certificates, profile->pairs[i].certificate, log);
    for (unsigned i = 0; i < profile->ticket_key_n; i++)
        adopt_other(contexts, profile->ticket_keys[i], log);
    for (unsigned i = 0; i < profile->stapling_file_n; i++)
        adopt_other(contexts, profile->stapling_files[i], log);
    adopt_other(contexts, profile->client_ca, log);
    adopt_other(contexts, profile->trusted, log);
    adopt_other(contexts, profile->crl, log);
    adopt_other(contexts, profile->dhparam, log);
}

/* Makes the profile's context in zeroed memory, with its pairs; -1 after a line of each mistake. */
static int make_context(struct contexts *contexts, struct context *context,
    const struct tls_profile *profile, struct certificates *certificates, struct log *log)
{
    int status =
        context_create(context, contexts->lib, profile, &contexts->files, contexts->ring, log);

    if (context->ctx != NULL && context_add_pairs(context, certificates, &contexts->files, log) < 0)
        status = -1;
    if (status == 0)
        adopt_profile(contexts, profile, certificates, log);
    return status;
}

int contexts_create(struct contexts *contexts, const struct libssl *lib, struct tls_files *files,
    const struct ticket_ring *ring, struct log *log)
{
    const struct tls_profiles *profiles = files->profiles;
    size_t file_n = profiles->file_n > 0 ? profiles->file_n : 1;
    struct certificates *certificates;
    int status = 0;

    contexts->lib = lib;
    contexts->ring = ring;
    contexts->files = (struct pem_files) {
        .opener = files,
        .profiles = profiles,
        .seen = calloc(file_n, sizeof(*contexts->files.seen)),
        .level = LEVEL_EMERG,
        .outcome = "",
    };
    contexts->of_files = calloc(file_n, sizeof(*contexts->of_files));
    contexts->list = calloc(profiles->n > 0 ? profiles->n : 1, sizeof(*contexts->list));
    certificates = certificates_create(&contexts->files, log);
    if (certificates == NULL || contexts->files.seen == NULL || contexts->of_files == NULL ||
        contexts->list == NULL) {
        log_write(log, LEVEL_EMERG, 0, "no memory for the certificates");
        certificates_destroy(certificates);
        return -1;
    }
    for (; contexts->n < profiles->n; contexts->n++)
        if (make_context(contexts, &contexts->list[contexts->n], &profiles->list[contexts->n],
                certificates, log) < 0)
            status = -1; /* goes on, for all mistakes to be logged */
    certificates_destroy(certificates);
    return status;
}

void contexts_destroy(struct contexts *contexts)
{
    for (unsigned i = 0; i < contexts->n; i++)
        context_destroy(&contexts->list[i]);
    free(contexts->list);
    free(contexts->of_files);
    free(contexts->files.seen);
}

/* ---- Changed files ---- */

static bool find_changes(struct contexts *contexts)
{
    bool any = false;

    for (uint32_t i = 0; i < contexts->files.profiles->file_n; i++) {
        contexts->of_files[i].changed = pem_file_has_changed(&contexts->files, i);
        any = any || contexts->of_files[i].changed;
    }
    return any;
}

static bool file_has_changed(const struct contexts *contexts, uint32_t file)
{
    return file != TLS_NO_FILE && contexts->of_files[file].changed;
}

static bool profile_has_changed(const struct contexts *contexts, const struct tls_profile *profile)
{
    for (unsigned i = 0; i < profile->pair_n; i++)
        if (file_has_changed(contexts, profile->pairs[i].certificate) ||
            file_has_changed(contexts, profile->pairs[i].key))
            return true;
    for (unsigned i = 0; i < profile->ticket_key_n; i++)
        if (file_has_changed(contexts, profile->ticket_keys[i]))
            return true;
    for (unsigned i = 0; i < profile->stapling_file_n; i++)
        if (file_has_changed(contexts, profile->stapling_files[i]))
            return true;
    return file_has_changed(contexts, profile->client_ca) ||
           file_has_changed(contexts, profile->trusted) ||
           file_has_changed(contexts, profile->crl) ||
           file_has_changed(contexts, profile->dhparam) ||
           file_has_changed(contexts, profile->passwords);
}

static void renew_context(struct contexts *contexts, struct context *context,
    struct certificates *certificates, struct log *log)
{
    struct context fresh = { .ctx = NULL };

    if (make_context(contexts, &fresh, context->profile, certificates, log) == 0)
        context_replace(context, &fresh);
    context_destroy(&fresh);
}

void contexts_refresh(struct contexts *contexts, struct log *log)
{
    struct certificates *certificates;

    contexts->files.level = contexts->files.opener->quiet ? LEVEL_INFO : LEVEL_ERROR;
    contexts->files.outcome = "; what was loaded before is used";
    if (!find_changes(contexts))
        return;
    certificates = certificates_create(&contexts->files, log);
    if (certificates == NULL) {
        log_write(log, LEVEL_ERROR, 0, "no memory for changed certificates");
        return;
    }
    for (unsigned i = 0; i < contexts->n; i++)
        if (profile_has_changed(contexts, contexts->list[i].profile))
            renew_context(contexts, &contexts->list[i], certificates, log);
    certificates_destroy(certificates);
}

void contexts_remind(struct contexts *contexts, struct log *log)
{
    for (uint32_t i = 0; i < contexts->files.profiles->file_n; i++)
        if (contexts->of_files[i].expiry != 0)
            expiry_remind(contexts_path(contexts, i), contexts->of_files[i].expiry, log);
}

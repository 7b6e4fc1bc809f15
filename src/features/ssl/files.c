/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of all profiles. Invariant: every path is one entry of the cycle's files, and
 * another one if it is written. */
#include "features/features.h"
#include "features/ssl/ssl.h"

#include <assert.h>
#include <string.h>

struct ssl_file {
    RB_ENTRY(ssl_file) node;
    const char *path;
    bool appends;
    uint32_t index;
    /* the first pair of a certificate, and the file of passwords of its key */
    struct tls_pair pair;
    uint32_t passwords;
    bool is_paired;
};

static int compare_files(const struct ssl_file *a, const struct ssl_file *b)
{
    return a->appends != b->appends ? a->appends - b->appends : strcmp(a->path, b->path);
}

RB_GENERATE_INTERNAL(ssl_files, ssl_file, node, compare_files, static __attribute__((unused)))

const char *ssl_place(struct apply *apply, const struct conf_word *word)
{
    return apply_taken(
        apply, arena_printf(apply->cycle->arena, "%s:%u", word->file->name, word->line));
}

/* Appends a file to the cycle's; false after a report. */
static bool append_file(struct apply *apply, const struct conf_word *word, struct ssl_file *file)
{
    struct tls_profiles *profiles = &apply->cycle->tls;
    const char *at = ssl_place(apply, word);
    struct tls_file *files =
        apply_grow(apply, profiles->files, profiles->file_n, sizeof(*profiles->files));

    if (at == NULL || files == NULL)
        return false;
    profiles->files = files;
    file->index = profiles->file_n++;
    assert(file->index != TLS_NO_FILE);
    profiles->files[file->index] =
        (struct tls_file) { .path = file->path, .at = at, .appends = file->appends };
    return true;
}

/* Returns a file, which becomes an entry at its first use; NULL after a report. */
static struct ssl_file *find_file(struct apply *apply, const struct conf_word *word, bool appends)
{
    struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    struct ssl_file wanted = { .path = apply_conf_path(apply, word->text), .appends = appends },
                    *file;

    if (wanted.path == NULL)
        return NULL;
    file = RB_FIND(ssl_files, &conf->files, &wanted);
    if (file != NULL || (file = apply_alloc(apply, sizeof(*file))) == NULL)
        return file;
    *file = wanted;
    if (!append_file(apply, word, file))
        return NULL;
    RB_INSERT(ssl_files, &conf->files, file);
    return file;
}

uint32_t ssl_file_index(struct apply *apply, const struct conf_word *word)
{
    const struct ssl_file *file = word != NULL ? find_file(apply, word, false) : NULL;

    return file != NULL ? file->index : TLS_NO_FILE;
}

const uint32_t *ssl_key_log(struct apply *apply, const struct conf_word *word)
{
    unsigned before = apply->cycle->tls.file_n;
    const struct ssl_file *file = word != NULL ? find_file(apply, word, true) : NULL;

    if (file == NULL)
        return NULL;
    if (apply->cycle->tls.file_n > before)
        report_warn(apply->report, word,
            "the keys of all sessions are written to \"%s\", with which they can be decrypted",
            word->text);
    return &file->index;
}

void ssl_fill_pair(struct apply *apply, struct tls_pair *pair, const struct conf_word *certificate,
    const struct conf_word *key, const struct conf_word *passwords)
{
    struct ssl_file *file = find_file(apply, certificate, false);
    uint32_t words = ssl_file_index(apply, passwords);

    if (file == NULL)
        return;
    *pair = (struct tls_pair) { .certificate = file->index, .key = ssl_file_index(apply, key) };
    if (file->is_paired && file->pair.key == pair->key && file->passwords == words) {
        pair->number = file->pair.number;
        return;
    }
    pair->number = apply->cycle->tls.pair_n++;
    if (file->is_paired)
        return;
    file->pair = *pair;
    file->passwords = words;
    file->is_paired = true;
}

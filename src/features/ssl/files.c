/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of all profiles. Invariant: every path is one entry of the cycle's files. */
#include "features/features.h"
#include "features/ssl/ssl.h"

#include <assert.h>
#include <string.h>

struct ssl_file {
    RB_ENTRY(ssl_file) node;
    const char *path;
    uint32_t index;
};

static int compare_files(const struct ssl_file *a, const struct ssl_file *b)
{
    return strcmp(a->path, b->path);
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
    profiles->files[file->index] = (struct tls_file) { .path = file->path, .at = at };
    return true;
}

uint32_t ssl_file_index(struct apply *apply, const struct conf_word *word)
{
    struct ssl_conf *conf = feature_conf(apply, FEATURE_SSL);
    struct ssl_file *file, *known;

    if (word == NULL || (file = apply_alloc(apply, sizeof(*file))) == NULL)
        return TLS_NO_FILE;
    file->path = apply_conf_path(apply, word->text);
    if (file->path == NULL)
        return TLS_NO_FILE;
    known = RB_FIND(ssl_files, &conf->files, file);
    if (known != NULL)
        return known->index;
    if (!append_file(apply, word, file))
        return TLS_NO_FILE;
    RB_INSERT(ssl_files, &conf->files, file);
    return file->index;
}

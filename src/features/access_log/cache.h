/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of access logs with variables in the path: open_log_file_cache.
 *
 * Responsible for opening files by path, and for closing files: at once, or when unused for a time,
 * too many, or due for the reopening of logs. Invariant: a file of the cache is in the tree and in
 * the list, the last used in front. */
#pragma once

#include "base/log_target.h"
#include "base/memory.h"
#include "event/loop.h"
#include "settings/setting.h"

/* A directive's values. */
struct access_cache_setting {
    unsigned index;          /* among a worker's caches */
    int64_t max;             /* files */
    int64_t inactive, valid; /* ms */
    int64_t min_uses;        /* before a file stays open */
};

struct access_cache;

/* NULL without memory. `setting` and the rest outlive the cache. */
struct access_cache *access_cache_create(
    const struct access_cache_setting *setting, const struct memory *memory, struct loop *loop);
void access_cache_destroy(struct access_cache **cache);

/* Returns the open file of the path until the next call; NULL with errno. */
struct log_target *access_cache_open(struct access_cache *cache, const char *path);
/* Takes a file back that was used. */
void access_cache_give(struct access_cache *cache, struct log_target *file);
/* Closes all files. */
void access_cache_clear(struct access_cache *cache);

/* The directive `open_log_file_cache`. */
int open_log_file_cache_set(
    struct apply *apply, const struct conf_directive *directive, void *field);

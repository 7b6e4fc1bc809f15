/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads `open_log_file_cache`, and keeps files open by path, while they are used. */
#include "features/access_log/cache.h"

#include "base/check.h"
#include "base/compiler.h"
#include "features/access_log/access_log.h"
#include "features/features.h"
#include "settings/parameter.h"
#include "settings/set_value.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct cached_file {
    RB_ENTRY(cached_file) node;
    TAILQ_ENTRY(cached_file) link;
    struct log_target target; /* closed while the file has too few uses */
    int64_t uses;
    uint64_t used_ms, checked_ms; /* last use; last good check of the path */
    char path[];
};

RB_HEAD(cached_files, cached_file);

struct access_cache {
    const struct access_cache_setting *setting;
    const struct memory *memory;
    struct loop *loop;
    struct cached_files files;
    TAILQ_HEAD(cached_list, cached_file) list; /* the last that was used in front */
    int64_t n;
    struct timer expiry; /* when the longest unused file is closed */
};

static int compare_paths(const struct cached_file *a, const struct cached_file *b)
{
    return strcmp(a->target.path, b->target.path);
}

RB_GENERATE_INTERNAL(cached_files, cached_file, node, compare_paths, static __attribute__((unused)))

static uint64_t now_of(const struct access_cache *cache)
{
    return cache->loop->clock.mono_ms;
}

static void close_file(struct cached_file *file)
{
    if (file->target.fd != -1)
        close(file->target.fd);
    file->target.fd = -1;
}

static void drop_file(struct access_cache *cache, struct cached_file *file)
{
    assert(cache->n > 0 && cache->n <= cache->setting->max);
    RB_REMOVE(cached_files, &cache->files, file);
    TAILQ_REMOVE(&cache->list, file, link);
    cache->n--;
    close_file(file);
    memory_release(cache->memory, file);
}

/* Drops the files that were not used for long enough, and waits for the next. */
static void expire_files(struct loop *loop, struct timer *timer)
{
    struct access_cache *cache = container_of(timer, struct access_cache, expiry);
    uint64_t inactive = (uint64_t)cache->setting->inactive;
    struct cached_file *file;

    while ((file = TAILQ_LAST(&cache->list, cached_list)) != NULL &&
           now_of(cache) - file->used_ms >= inactive)
        drop_file(cache, file);
    if (file != NULL)
        timer_set(loop, timer, file->used_ms + inactive - now_of(cache));
}

struct access_cache *access_cache_create(
    const struct access_cache_setting *setting, const struct memory *memory, struct loop *loop)
{
    struct access_cache *cache = memory_alloc(memory, sizeof(*cache));

    assert(setting->max > 0);
    if (cache == NULL)
        return NULL;
    *cache = (struct access_cache) {
        .setting = setting, .memory = memory, .loop = loop, .expiry = { .expired = expire_files }
    };
    RB_INIT(&cache->files);
    TAILQ_INIT(&cache->list);
    return cache;
}

void access_cache_clear(struct access_cache *cache)
{
    struct cached_file *file;

    while ((file = TAILQ_FIRST(&cache->list)) != NULL)
        drop_file(cache, file);
    timer_del(cache->loop, &cache->expiry);
    assert(cache->n == 0 && RB_EMPTY(&cache->files));
}

void access_cache_destroy(struct access_cache **cache)
{
    if (*cache == NULL)
        return;
    access_cache_clear(*cache);
    memory_release((*cache)->memory, *cache);
    *cache = NULL;
}

/* Adds a closed file, perhaps in the place of the longest unused; NULL without memory. */
static struct cached_file *add_cached_file(struct access_cache *cache, const char *path)
{
    size_t n = strlen(path) + 1;
    struct cached_file *file;

    if (cache->n >= cache->setting->max)
        drop_file(cache, TAILQ_LAST(&cache->list, cached_list));
    file = memory_alloc(cache->memory, sizeof(*file) + n);
    if (file == NULL)
        return NULL;
    *file = (struct cached_file) { .target = { .fd = -1, .path = file->path } };
    memcpy(file->path, path, n);
    RB_INSERT(cached_files, &cache->files, file);
    TAILQ_INSERT_HEAD(&cache->list, file, link);
    cache->n++;
    if (!timer_is_set(&cache->expiry) && cache->setting->inactive > 0)
        timer_set(cache->loop, &cache->expiry, (uint64_t)cache->setting->inactive);
    return file;
}

/* Whether the path still leads to the open file. */
static bool is_there(const struct cached_file *file)
{
    struct stat named, opened;

    return stat(file->path, &named) == 0 && fstat(file->target.fd, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Closes a file whose path may lead to a different file by now. */
static void check_file(const struct access_cache *cache, struct cached_file *file)
{
    if (file->target.fd == -1 || now_of(cache) - file->checked_ms < (uint64_t)cache->setting->valid)
        return;
    file->checked_ms = now_of(cache);
    if (!is_there(file))
        close_file(file);
}

struct log_target *access_cache_open(struct access_cache *cache, const char *path)
{
    struct cached_file wanted = { .target = { .path = path } }, *file;
    int error;

    file = RB_FIND(cached_files, &cache->files, &wanted);
    if (file == NULL) {
        file = add_cached_file(cache, path);
    } else {
        TAILQ_REMOVE(&cache->list, file, link);
        TAILQ_INSERT_HEAD(&cache->list, file, link);
        check_file(cache, file);
    }
    if (file == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    file->used_ms = now_of(cache);
    file->uses++;
    if (file->target.fd != -1)
        return &file->target;
    if (log_target_open(&file->target) == -1) {
        error = errno;
        drop_file(cache, file);
        errno = error;
        return NULL;
    }
    file->checked_ms = now_of(cache);
    return &file->target;
}

void access_cache_give(struct access_cache *cache, struct log_target *target)
{
    struct cached_file *file = container_of(target, struct cached_file, target);

    assert(target->fd != -1 && target->path == file->path);
    if (file->uses < cache->setting->min_uses || cache->setting->inactive == 0)
        close_file(file);
}

#define INACTIVE_MS 10000
#define VALID_MS 60000
#define TIME_MOST (INT64_C(86400000) * 365)
#define CACHE_EXPECTED "\"off\", or max=NUMBER inactive=TIME min_uses=NUMBER valid=TIME"
#define TIME_EXPECTED "a time of at most 1y"

static const struct parameter cache_parameters[] = {
#define FIELD(member) offsetof(struct access_cache_setting, member)
    { "inactive=", PARAMETER_MSEC, FIELD(inactive), 0, TIME_MOST, TIME_EXPECTED },
    { "max=", PARAMETER_NUMBER, FIELD(max), 1, INT_MAX, "a number of at least 1" },
    { "min_uses=", PARAMETER_NUMBER, FIELD(min_uses), 0, INT_MAX, "a number of at least 0" },
    { "valid=", PARAMETER_MSEC, FIELD(valid), 0, TIME_MOST, TIME_EXPECTED },
    { .name = NULL },
#undef FIELD
};

int open_log_file_cache_set(
    struct apply *apply, const struct conf_directive *directive, void *field)
{
    struct access_log_conf *conf;
    struct access_cache_setting *cache;

    *(const struct access_cache_setting **)field = NULL;
    if (strcmp(directive->args[0].text, "off") == 0)
        return directive->arg_n == 1
                   ? 0
                   : set_bad_value(apply, directive, 1, "expected " CACHE_EXPECTED);
    cache = apply_alloc(apply, sizeof(*cache));
    if (cache == NULL)
        return -1;
    *cache =
        (struct access_cache_setting) { .inactive = INACTIVE_MS, .valid = VALID_MS, .min_uses = 1 };
    for (unsigned i = 0; i < directive->arg_n; i++)
        if (parameter_set(apply, directive, i, cache_parameters, CACHE_EXPECTED, cache) == -1)
            return -1;
    if (cache->max == 0)
        return report_error(
            apply->report, &directive->name, "\"open_log_file_cache\" must have \"max\" parameter");
    conf = feature_conf(apply, FEATURE_ACCESS_LOG);
    cache->index = conf->cache_n++;
    *(const struct access_cache_setting **)field = cache;
    return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes memory of the cycle's arena. A failure is reported, and ends with the reading. */
#include "settings/apply_alloc.h"

#include "settings/apply.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#define UNIX "unix:"

void *apply_taken(struct apply *apply, void *memory)
{
    if (memory == NULL)
        report_error(apply->report, NULL, "out of memory");
    return memory;
}

void *apply_alloc(struct apply *apply, size_t size)
{
    return apply_taken(apply, arena_alloc(apply->cycle->arena, size));
}

void *apply_grow(struct apply *apply, void *list, unsigned n, size_t size)
{
    void *larger;

    assert(size > 0 && (n == 0) == (list == NULL));
    if ((n & (n - 1)) != 0) /* the memory doubles at powers of two */
        return list;
    larger = apply_alloc(apply, (n > 0 ? 2 * n : 1) * size);
    if (larger != NULL && n > 0)
        memcpy(larger, list, n * size);
    return larger;
}

char *apply_strdup(struct apply *apply, const char *text)
{
    return apply_taken(apply, arena_strdup(apply->cycle->arena, text));
}

/* Puts `n` bytes of a directory before a relative path. */
static const char *join_path(struct apply *apply, const char *directory, size_t n, const char *path)
{
    assert(directory[0] == '/');
    if (path[0] == '/')
        return path;
    return apply_taken(
        apply, arena_printf(apply->cycle->arena, "%.*s/%s", (int)n, directory, path));
}

const char *apply_conf_path(struct apply *apply, const char *text)
{
    const char *conf = apply->options->conf;

    return join_path(apply, conf, (size_t)(strrchr(conf, '/') - conf), text);
}

const char *apply_path(struct apply *apply, const char *text)
{
    const char *prefix = apply->options->prefix;

    return prefix == NULL ? apply_conf_path(apply, text)
                          : join_path(apply, prefix, strlen(prefix), text);
}

const char *apply_address(struct apply *apply, const char *text)
{
    const char *path;

    if (strncasecmp(text, UNIX, strlen(UNIX)) != 0 || text[strlen(UNIX)] == '\0')
        return text;
    path = apply_path(apply, text + strlen(UNIX));
    if (path == NULL || path == text + strlen(UNIX))
        return path == NULL ? NULL : text;
    return apply_taken(apply, arena_printf(apply->cycle->arena, UNIX "%s", path));
}

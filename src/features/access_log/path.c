/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes paths of valid names: empty names and dots become underscores, long names are cut. */
#include "features/access_log/path.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static bool is_dots(const char *name, size_t n)
{
    return n <= 2 && strspn(name, ".") >= n;
}

/* Copies a name of n bytes; returns how many bytes it has become. */
static size_t copy_name(char *out, const char *name, size_t n)
{
    if (n == 0 || is_dots(name, n)) {
        n += n == 0;
        memset(out, '_', n);
        return n;
    }
    if (n > NAME_MAX)
        n = NAME_MAX;
    memcpy(out, name, n);
    return n;
}

int access_path_clean(const char *path, size_t n, char out[PATH_MAX])
{
    char *p = out + n;

    assert(n < PATH_MAX);
    memcpy(out, path, n);
    for (path += n;; path++) {
        size_t name = strcspn(path, "/");

        if (p + name + 2 > out + PATH_MAX) { /* with a "_" and a slash, or the terminator */
            errno = ENAMETOOLONG;
            return -1;
        }
        p += copy_name(p, path, name);
        path += name;
        *p = *path;
        if (*path == '\0')
            return 0;
        p++;
    }
}

int access_path_make(const struct access_path *path, struct fb_conn *conn, char out[PATH_MAX])
{
    char raw[PATH_MAX], *end;

    assert(path->format.escape == LOG_ESCAPE_PATH);
    end = log_format_write(&path->format, conn, raw, raw + PATH_MAX - 1);
    if (end == NULL) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *end = '\0';
    return access_path_clean(raw, strlen(path->directory) + 1, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the files of an include and parses each once. Counts the depth, so that a file that
 * includes itself by another name ends, too. */
#include "conf/conf.h"
#include "conf/parser.h"
#include "conf/report.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <string.h>

struct include {
    struct conf_source *source;
    const struct conf_word *word;
    int (*each)(void *arg, struct conf_block *block);
    void *arg;
};

static int refuse_include(const struct include *include, const char *what, const char *path)
{
    include->source->too_deep = true;
    report_error(include->source->report, include->word, "\"%s\" %s", path, what);
    return -1;
}

static int include_file(const struct include *include, const char *path)
{
    struct conf_source *source = include->source;
    unsigned depth = 0, errors = source->report->error_n;
    const struct conf_file *file;
    struct conf_block *block;
    int rc;

    /* a file that includes itself by another name runs into the limit instead */
    for (file = include->word->file; file != NULL; file = file->includer) {
        if (strcmp(file->name, path) == 0)
            return refuse_include(include, "includes itself", path);
        if (++depth > CONF_INCLUDE_MAX)
            return refuse_include(include, "is included too deeply, does it include itself?", path);
    }
    if ((block = conf_parse_file(source, path, include->word)) == NULL)
        return -1;
    rc = include->each(include->arg, block);
    return rc == -1 || source->report->error_n > errors ? -1 : 0;
}

/* Ignores a directory that does not exist, because nothing in it can match; a directory that cannot
 * be read is an error. */
static int glob_failed(const char *path, int error)
{
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

static int include_pattern(const struct include *include, const char *pattern)
{
    struct conf_report *report = include->source->report;
    glob_t found;
    int rc = 0;

    errno = 0;
    switch (glob(pattern, 0, glob_failed, &found)) {
    case 0:
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (include_file(include, found.gl_pathv[i]) == -1)
                rc = -1;
        break;
    case GLOB_NOMATCH:
        break;
    case GLOB_NOSPACE:
        report_error(report, include->word, "out of memory");
        rc = -1;
        break;
    default:
        conf_call_failed(include->source, include->word, "glob", pattern, errno);
        rc = -1;
        break;
    }
    globfree(&found);
    return rc;
}

int conf_include(struct conf_source *source, const struct conf_word *word, const char *pattern,
    int (*each)(void *arg, struct conf_block *block), void *arg)
{
    const struct include include = { source, word, each, arg };

    assert(word->file != NULL);
    if (source->too_deep && word->file->includer != NULL)
        return -1;
    if (strpbrk(pattern, "*?[") == NULL)
        return include_file(&include, pattern);
    return include_pattern(&include, pattern);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and stores the texts of a configuration, and finds the files of an include. Refuses a file
 * that changes meanwhile. The depth is counted for a file that includes itself by another name. */
#include "conf/conf.h"
#include "conf/report.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void conf_source_init(struct conf_source *source, struct arena *arena, struct conf_report *report)
{
    *source = (struct conf_source) { .arena = arena, .trees = arena, .report = report };
    STAILQ_INIT(&source->files);
}

/* A file whose text is still to be filled in, or NULL without memory. */
static struct conf_file *file_create(
    struct arena *arena, const char *name, char **text_r, size_t size, const struct conf_word *from)
{
    struct conf_file *file = arena_alloc(arena, sizeof(*file));

    if (file == NULL)
        return NULL;
    file->name = arena_strdup(arena, name);
    file->text = *text_r = arena_alloc(arena, size + 1);
    file->size = size;
    file->includer = from != NULL ? from->file : NULL;
    return file->name != NULL && file->text != NULL ? file : NULL;
}

/* The byte order mark of other systems' editors is no part of the first word. */
static void skip_mark(struct conf_file *file)
{
    if (file->size >= 3 && memcmp(file->text, "\xef\xbb\xbf", 3) == 0) {
        file->text += 3;
        file->size -= 3;
    }
}

/* Reports a failed call; a lenient source only warns of an included file without rights. */
static struct conf_file *fail_call(struct conf_source *source, const struct conf_word *from,
    const char *call, const char *path, int error)
{
    bool pardoned = source->lenient && from != NULL && error == EACCES;

    if (pardoned)
        report_warn(source->report, from, "%s() \"%s\" failed (%d: %s)", call, path, error,
            strerror(error));
    else
        report_error(source->report, from, "%s() \"%s\" failed (%d: %s)", call, path, error,
            strerror(error));
    source->partial = source->partial || pardoned;
    return NULL;
}

/* Reads up to `size` bytes; fewer only at the end of the file. -1 with errno. */
static ssize_t read_whole_text(int fd, char *text, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, text + n, size - n);

        if (got == 0)
            break;
        if (got == -1 && errno != EINTR)
            return -1;
        if (got > 0)
            n += (size_t)got;
    }
    return (ssize_t)n;
}

static struct conf_file *read_text_of(
    struct conf_source *source, int fd, const char *path, const struct conf_word *from)
{
    struct conf_file *file;
    struct stat status;
    ssize_t n;
    char *text;

    if (fstat(fd, &status) == -1)
        return fail_call(source, from, "fstat", path, errno);
    if (S_ISDIR(status.st_mode))
        return fail_call(source, from, "read", path, EISDIR);
    if (!S_ISREG(status.st_mode)) {
        report_error(source->report, from, "\"%s\" is not a regular file", path);
        return NULL;
    }
    if (status.st_size > CONF_FILE_MAX) {
        report_error(source->report, from, "\"%s\" is larger than %d MiB", path,
            CONF_FILE_MAX / (1024 * 1024));
        return NULL;
    }
    file = file_create(source->arena, path, &text, (size_t)status.st_size, from);
    if (file == NULL) {
        report_error(source->report, from, "out of memory");
        return NULL;
    }
    /* the text's last byte is the NUL, or shows that the file has grown */
    n = read_whole_text(fd, text, file->size + 1);
    if (n == -1)
        return fail_call(source, from, "read", path, errno);
    if ((size_t)n != file->size) {
        report_error(source->report, from, "\"%s\" was changed while it was read", path);
        return NULL;
    }
    return file;
}

struct conf_block *conf_parse_file(
    struct conf_source *source, const char *path, const struct conf_word *from)
{
    /* O_NONBLOCK because opening a FIFO would otherwise wait for its writer */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct conf_file *file;

    assert(path[0] == '/');
    if (fd == -1) {
        fail_call(source, from, "open", path, errno);
        return NULL;
    }
    file = read_text_of(source, fd, path, from);
    close(fd);
    if (file == NULL)
        return NULL;
    skip_mark(file);
    STAILQ_INSERT_TAIL(&source->files, file, link);
    return conf_parse(source, file, "file");
}

struct conf_block *conf_parse_text(
    struct conf_source *source, const char *name, const char *text, size_t size)
{
    struct conf_file *file;
    char *copy;

    if (size > CONF_FILE_MAX) {
        report_error(source->report, NULL, "the text of \"%s\" is larger than %d MiB", name,
            CONF_FILE_MAX / (1024 * 1024));
        return NULL;
    }
    if ((file = file_create(source->arena, name, &copy, size, NULL)) == NULL) {
        report_error(source->report, NULL, "out of memory");
        return NULL;
    }
    if (size > 0)
        memcpy(copy, text, size);
    skip_mark(file);
    return conf_parse(source, file, "parameter");
}

/* ---- Includes ---- */

struct include {
    struct conf_source *source;
    const struct conf_word *word;
    int (*each)(void *arg, struct conf_block *block);
    void *arg;
};

static int refuse_include(const struct include *include, const char *what, const char *path)
{
    include->source->too_deep = true;
    return report_error(include->source->report, include->word, "\"%s\" %s", path, what);
}

static int include_file(const struct include *include, const char *path)
{
    struct conf_source *source = include->source;
    unsigned depth = 0, errors = source->report->error_n;
    const struct conf_file *file;
    struct conf_block *block;
    int rc;

    /* a file that includes itself by a different name runs into the limit instead */
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

/* Ignores a missing directory, without matches; an unreadable directory is an error. */
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
        fail_call(include->source, include->word, "glob", pattern, errno);
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

/* ---- -T ---- */

static bool was_dumped(const struct conf_source *source, const struct conf_file *file)
{
    const struct conf_file *before;

    STAILQ_FOREACH (before, &source->files, link) {
        if (before == file)
            return false;
        if (strcmp(before->name, file->name) == 0)
            return true;
    }
    return false;
}

void conf_dump(const struct conf_source *source, FILE *out)
{
    const struct conf_file *file;

    STAILQ_FOREACH (file, &source->files, link) {
        if (was_dumped(source, file))
            continue;
        fprintf(out, "# configuration file %s:\n", file->name);
        fwrite(file->text, 1, file->size, out);
        fputc('\n', out);
    }
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes certificate and key as two new files, or none. Each file is written under a temporary name
 * and synchronised before a link() gives the file its name, which fails where the name exists.
 * Never replaces a file, and never makes a key that others can read, whatever the umask. */
#include "cli/certificate_files.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct new_file {
    const char *text;
    mode_t mode;
    char *path;
    char temporary[PATH_MAX]; /* "": there is no such file */
    bool linked;              /* `path` is the file, too */
};

static int fill_paths(struct new_file *file, const char *directory, const char *name,
    const char *suffix, struct log *log)
{
    const char *top = strcmp(directory, "/") == 0 ? "" : directory;
    int n = snprintf(file->temporary, PATH_MAX, "%s/.%s%s.XXXXXX", top, name, suffix);

    if (n >= 0 && n < PATH_MAX) {
        snprintf(file->path, PATH_MAX, "%s/%s%s", top, name, suffix);
        return 0;
    }
    log_write(log, LEVEL_EMERG, 0, "the path is too long: \"%s\"", directory);
    return -1;
}

static int write_pem(int fd, const char *text)
{
    for (size_t n = strlen(text); n > 0;) {
        ssize_t written = write(fd, text, n);

        if (written == -1)
            return -1;
        text += written;
        n -= (size_t)written;
    }
    return 0;
}

/* Writes the text under the temporary name: mkostemp() makes the file with mode 0600. */
static int write_temporary(struct new_file *file, struct log *log)
{
    int fd = mkostemp(file->temporary, O_CLOEXEC);
    const char *call = NULL;

    if (fd == -1) {
        log_write(log, LEVEL_EMERG, errno, "mkostemp() \"%s\" failed", file->temporary);
        file->temporary[0] = '\0';
        return -1;
    }
    if (write_pem(fd, file->text) == -1)
        call = "write()";
    else if (fchmod(fd, file->mode) == -1)
        call = "fchmod()";
    else if (fsync(fd) == -1)
        call = "fsync()";
    if (call != NULL)
        log_write(log, LEVEL_EMERG, errno, "%s to \"%s\" failed", call, file->temporary);
    descriptor_close(fd);
    return call == NULL ? 0 : -1;
}

static int link_new_file(struct new_file *file, struct log *log)
{
    file->linked = link(file->temporary, file->path) == 0;
    if (file->linked)
        return 0;
    if (errno == EEXIST)
        log_write(log, LEVEL_EMERG, 0, "\"%s\" exists already, and is left as it is", file->path);
    else
        log_write(
            log, LEVEL_EMERG, errno, "link() \"%s\" to \"%s\" failed", file->temporary, file->path);
    return -1;
}

/* Synchronises the names, as far as the directory's rights and file system allow. */
static void sync_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd != -1)
        fsync(fd);
    descriptor_close(fd);
}

static int write_files(struct new_file files[2], struct log *log)
{
    int status = 0;

    for (int i = 0; status == 0 && i < 2; i++)
        status = write_temporary(&files[i], log);
    for (int i = 0; status == 0 && i < 2; i++)
        status = link_new_file(&files[i], log);
    for (int i = 0; i < 2; i++) {
        if (status == -1 && files[i].linked)
            unlink(files[i].path);
        if (files[i].temporary[0] != '\0')
            unlink(files[i].temporary);
    }
    return status;
}

int certificate_files_write(const struct certificate *made, const char *directory, const char *name,
    struct certificate_paths *paths, struct log *log)
{
    /* the key first: at no time is there a certificate without a key */
    struct new_file files[2] = {
        { .text = made->key, .mode = 0600, .path = paths->key },
        { .text = made->certificate, .mode = 0644, .path = paths->certificate },
    };
    char base[CERTIFICATE_COMMON_NAME_MAX + 1];
    sigset_t all, blocked;
    int status;

    assert(strlen(name) < sizeof(base) && strchr(name, '/') == NULL);
    snprintf(base, sizeof(base), "%s", name);
    if (base[0] == '*')
        base[0] = '_';
    if (fill_paths(&files[0], directory, base, ".key", log) == -1 ||
        fill_paths(&files[1], directory, base, ".crt", log) == -1)
        return -1;
    /* an interrupt leaves no temporary file */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &blocked);
    status = write_files(files, log);
    if (status == 0)
        sync_directory(directory);
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    return status;
}

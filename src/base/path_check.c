/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks paths by the rules of the later opening. A log's symbolic link is followed step by step,
 * as by os/log_file.c, because the link's target may be missing. */
#include "base/path_check.h"

#include "base/compiler.h"
#include "os/log_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 16

/* Notes a fault; the errno is named, unless it is 0. Returns false. */
static bool PRINTF_FORMAT(3, 4)
    set_fault(struct path_fault *fault, int error, const char *format, ...)
{
    size_t size = sizeof(fault->text), n;
    va_list args;

    va_start(args, format);
    vsnprintf(fault->text, size, format, args);
    va_end(args);
    n = strlen(fault->text);
    if (error != 0)
        snprintf(fault->text + n, size - n, " (%d: %s)", error, strerror(error));
    fault->rights = error == EACCES || error == EPERM || error == EROFS;
    return false;
}

static bool is_accessible(const char *path, int mode)
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

static bool check_directory(const char *path, int mode, struct path_fault *fault)
{
    struct stat st;

    if (stat(path, &st) == -1)
        return errno == ENOENT
                   ? set_fault(fault, 0, "there is no directory \"%s\"", path)
                   : set_fault(fault, errno, "the directory \"%s\" cannot be reached", path);
    if (!S_ISDIR(st.st_mode))
        return set_fault(fault, 0, "\"%s\" is not a directory", path);
    if (!is_accessible(path, mode))
        return set_fault(fault, errno, "the directory \"%s\" cannot be %s", path,
            mode & W_OK ? "written to" : "entered");
    return true;
}

static bool check_parent(const char *path, struct path_fault *fault)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];

    assert(path[0] == '/');
    while (slash > path && slash[-1] == '/')
        slash--;
    if (slash - path >= PATH_MAX)
        return set_fault(fault, ENAMETOOLONG, "the path is too long");
    snprintf(directory, sizeof(directory), "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return check_directory(directory, W_OK | X_OK, fault);
}

static bool follow_link(char path[PATH_MAX], struct path_fault *fault)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    size_t head = n > 0 && target[0] == '/' ? 0 : (size_t)(strrchr(path, '/') + 1 - path);

    if (n == -1)
        return set_fault(fault, errno, "the symbolic link \"%s\" cannot be read", path);
    if (head + (size_t)n >= PATH_MAX)
        return set_fault(fault, ENAMETOOLONG, "the symbolic link \"%s\" cannot be followed", path);
    target[n] = '\0';
    memcpy(path + head, target, (size_t)n + 1);
    return true;
}

static bool check_log_file(const char *path, const struct stat *st, struct path_fault *fault)
{
    if (S_ISDIR(st->st_mode))
        return set_fault(fault, 0, "\"%s\" is a directory", path);
    if (S_ISSOCK(st->st_mode))
        return set_fault(fault, 0, "\"%s\" is a socket", path);
    if (!is_accessible(path, W_OK))
        return set_fault(fault, errno, "\"%s\" cannot be written to", path);
    if (geteuid() == 0 && S_ISREG(st->st_mode) && st->st_nlink > 1)
        return set_fault(
            fault, 0, "\"%s\" has another name (a hard link), and root does not write to it", path);
    return true;
}

static bool check_log(const char *path, struct path_fault *fault)
{
    char followed[PATH_MAX];
    struct stat st;

    if (strlen(path) >= sizeof(followed))
        return set_fault(fault, ENAMETOOLONG, "the path is too long");
    strcpy(followed, path);
    for (int links = 0; links < LINKS_MAX; links++) {
        if (log_file_is_descriptor(followed))
            return true;
        if (lstat(followed, &st) == -1)
            return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                       ? check_parent(followed, fault)
                       : set_fault(fault, errno, "\"%s\" cannot be reached", followed);
        if (!S_ISLNK(st.st_mode))
            return check_log_file(followed, &st, fault);
        if (geteuid() == 0 && st.st_uid != 0)
            return set_fault(fault, 0,
                "\"%s\" is a symbolic link of another user, which root does not follow", followed);
        if (!follow_link(followed, fault))
            return false;
    }
    return set_fault(fault, ELOOP, "the symbolic link \"%s\" cannot be followed", path);
}

static bool check_lock(const char *path, struct path_fault *fault)
{
    char name[PATH_MAX];
    struct stat st;

    if ((size_t)snprintf(name, sizeof(name), "%s.lock", path) >= sizeof(name))
        return set_fault(fault, ENAMETOOLONG, "the file cannot be locked");
    if (lstat(name, &st) == -1)
        return true;
    if (!S_ISREG(st.st_mode))
        return set_fault(fault, 0, "the lock \"%s\" is not a regular file", name);
    if (st.st_nlink > 1)
        return set_fault(fault, 0, "the lock \"%s\" has another name (a hard link)", name);
    if (geteuid() == 0 && st.st_uid != 0)
        return set_fault(fault, 0, "the lock \"%s\" belongs to another user", name);
    if (!is_accessible(name, R_OK | W_OK))
        return set_fault(fault, errno, "the lock \"%s\" cannot be written to", name);
    return true;
}

static bool check_pid(const char *path, struct path_fault *fault)
{
    struct stat st;

    if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
        return set_fault(fault, 0, "the path exists and is not a regular file");
    return check_lock(path, fault) && check_parent(path, fault);
}

/* A listening socket may be passed to the daemon, which then makes none. */
static bool check_socket(const char *path, bool passed, struct path_fault *fault)
{
    struct stat st;

    if (lstat(path, &st) == -1)
        return check_parent(path, fault);
    if (!S_ISSOCK(st.st_mode))
        return set_fault(fault, 0, "the path exists and is not a socket");
    return passed || check_parent(path, fault);
}

bool path_check(enum path_use use, const char *path, struct path_fault *fault)
{
    assert(path[0] == '/');
    switch (use) {
    case PATH_LOG:
        return check_log(path, fault);
    case PATH_PID:
        return check_pid(path, fault);
    case PATH_CONTROL:
    case PATH_LISTEN:
        return check_socket(path, use == PATH_LISTEN, fault);
    default:
        return check_directory(path, X_OK, fault);
    }
}

bool path_is_same(const char *a, const char *b)
{
    const char *paths[] = { a, b }, *names[2];
    char directory[PATH_MAX];
    struct stat st[2];

    if (strcmp(a, b) == 0)
        return true;
    for (int i = 0; i < 2; i++) {
        names[i] = strrchr(paths[i], '/');
        if (names[i] == NULL || names[i] - paths[i] + 1 >= PATH_MAX)
            return false;
        snprintf(directory, sizeof(directory), "%.*s", (int)(names[i] - paths[i] + 1), paths[i]);
        if (stat(directory, &st[i]) == -1)
            return false;
    }
    return strcmp(names[0], names[1]) == 0 && st[0].st_dev == st[1].st_dev &&
           st[0].st_ino == st[1].st_ino;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens files by names from workers: see named_file.h. The limit is a matter of text: what symbolic
 * links within the directory lead to is its administrator's choice, as far as Landlock allows. */
#include "keeper/named_file.h"

#include "os/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a part of the path is "..". */
static bool leads_upwards(const char *path)
{
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += strspn(part, "/");
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

static bool lies_beneath(const char *directory, const char *path)
{
    size_t n = strlen(directory);

    n -= n > 0 && directory[n - 1] == '/'; /* the root */
    return strncmp(path, directory, n) == 0 && path[n] == '/' && path[n + 1] != '\0';
}

/* Opens what is checked to be a regular file; -1 with errno. */
static int open_named_file(const char *path)
{
    struct stat status = { .st_mode = 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd == -1 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return -1;
}

/* Returns why the path, of n bytes, may not be opened; NULL: it may. */
static const char *refuse_path(const char *directory, const char *path, int n)
{
    if (n >= NAMED_PATH)
        return "the path is too long";
    if (!lies_beneath(directory, path))
        return "the path lies outside of the directory with which the directive's value begins";
    if (leads_upwards(path + strlen(directory)))
        return "\"..\" is refused in a path with variables";
    return NULL;
}

int named_file_open(
    const char *directory, const char *name, char path[NAMED_PATH], char reason[NAMED_REASON])
{
    bool slash = directory[strlen(directory) - 1] == '/';
    int n = name[0] == '/'
                ? snprintf(path, NAMED_PATH, "%s", name)
                : snprintf(path, NAMED_PATH, "%s%s%s", directory, slash ? "" : "/", name);
    const char *refusal = refuse_path(directory, path, n);
    int fd;

    assert(directory[0] == '/');
    if (strncmp(name, "data:", 5) == 0) { /* for nginx: a key, which no log is to have */
        snprintf(path, NAMED_PATH, "data:");
        refusal = "certificates and keys in variables are not supported, only their paths";
    }
    if (refusal != NULL) {
        snprintf(reason, NAMED_REASON, "%s", refusal);
        return -1;
    }
    fd = open_named_file(path);
    if (fd == -1)
        snprintf(reason, NAMED_REASON, "open() failed (%d: %s)%s", errno, strerror(errno),
            errno == EACCES
                ? ": keeper processes open files of paths with variables as \"user\", who "
                  "must be able to read them, and follow no link out of the directory"
                : "");
    return fd;
}

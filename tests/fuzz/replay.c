/* SPDX-License-Identifier: BSD-2-Clause */
/* Feeds every file of the argument directories to a fuzzer. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool report_failure(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
}

/* Reads into a block of exactly the file's size, so that a sanitizer sees a byte read too far. */
static bool feed_file(int fd, size_t size, const char *path)
{
    uint8_t *data = malloc(size > 0 ? size : 1);
    bool fed = data != NULL && read(fd, data, size) == (ssize_t)size;

    if (!fed)
        report_failure(path);
    else
        fed = LLVMFuzzerTestOneInput(data, size) == 0;
    free(data);
    return fed;
}

static bool replay_file(int directory, const char *path, const char *name, unsigned *count)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    bool replayed = true;

    if (fd == -1 || fstat(fd, &status) == -1) {
        replayed = report_failure(name);
    } else if (S_ISREG(status.st_mode)) {
        ++*count;
        fprintf(stderr, "%s/%s\n", path, name); /* printed before, for a failure */
        replayed = feed_file(fd, (size_t)status.st_size, name);
    }
    if (fd != -1)
        close(fd);
    return replayed;
}

static bool replay_directory(const char *path, unsigned *count)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    bool replayed = true;

    if (directory == NULL)
        return report_failure(path);
    while ((entry = readdir(directory)) != NULL)
        replayed &= replay_file(dirfd(directory), path, entry->d_name, count);
    closedir(directory);
    return replayed;
}

int main(int argc, char **argv)
{
    bool replayed = true;

    for (int i = 1; i < argc; i++) {
        unsigned count = 0;

        replayed &= replay_directory(argv[i], &count);
        if (count == 0) {
            fprintf(stderr, "%s: no file to replay\n", argv[i]);
            replayed = false;
        }
    }
    return argc > 1 && replayed ? EXIT_SUCCESS : EXIT_FAILURE;
}

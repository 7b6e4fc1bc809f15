/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates for challenges of ACME: see challenge.h. */
#include "keeper/challenge.h"

#include "keeper/named_file.h"
#include "keeper/reason.h"
#include "os/descriptor.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Writes the name of the file, in lower case; false: no host has the name. */
static bool name_challenge(const char *name, char file[TLS_NAME_MOST + sizeof(".pem")])
{
    size_t n = strspn(name, "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");

    if (n == 0 || n > TLS_NAME_MOST || name[n] != '\0' || name[0] == '.' ||
        strstr(name, "..") != NULL)
        return false;
    for (size_t i = 0; i < n; i++)
        file[i] = (char)tolower((unsigned char)name[i]);
    memcpy(file + n, ".pem", sizeof(".pem"));
    return true;
}

/* Reads certificate and key from an open file; -1 after writing why that is impossible. */
static int read_challenge(struct pair *pair, int fd, char *why, size_t size)
{
    struct pem_file file = { .p = NULL };
    const char *failed = pem_file_read(&file, fd);

    if (failed != NULL) {
        snprintf(why, size, "%s failed (%d: %s)", failed, errno, strerror(errno));
    } else {
        failed = pair_read_certificate(pair, file.bio);
        (void)BIO_reset(file.bio);
        if (failed == NULL)
            failed = pair_read_key(pair, file.bio, "");
        if (failed != NULL)
            reason_take(why, size, failed);
    }
    pem_file_close(&file);
    return failed == NULL ? 0 : -1;
}

int challenge_load(struct pair *pair, const char *directory, const char *name, char why[TLS_TEXT])
{
    char file[TLS_NAME_MOST + sizeof(".pem")], path[NAMED_PATH], reason[NAMED_REASON];
    int fd, status = -1;

    assert(pair->leaf == NULL && pair->key == NULL);
    if (name == NULL || !name_challenge(name, file)) {
        snprintf(why, TLS_TEXT, "no challenge without the name of a host");
        return -1;
    }
    fd = named_file_open(directory, file, path, reason);
    if (fd != -1)
        status = read_challenge(pair, fd, reason, sizeof(reason));
    descriptor_close(fd);
    if (status == -1)
        snprintf(why, TLS_TEXT, "no challenge for \"%.200s\": %s", name, reason);
    return status;
}

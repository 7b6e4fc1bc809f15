/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the two files of a new certificate. */
#pragma once

#include "cli/certificate.h"

#include <limits.h>

struct certificate_paths {
    char certificate[PATH_MAX]; /* DIRECTORY/NAME.crt */
    char key[PATH_MAX];         /* DIRECTORY/NAME.key */
};

/* Writes a certificate, for all to read, and the key, for this user alone. The directory is an
 * absolute path; the name is a checked common name, whose "*" becomes "_". Returns -1 after an
 * emerg line, without leaving any file. An existing file is never replaced. */
int certificate_files_write(const struct certificate *made, const char *directory, const char *name,
    struct certificate_paths *paths, struct log *log);

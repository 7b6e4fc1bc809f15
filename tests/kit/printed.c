/* SPDX-License-Identifier: BSD-2-Clause */
/* Redirects standard error into memory between printed_begin() and printed_end(). */
#include "kit/printed.h"

#include "support/test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

void printed_begin(struct printed *printed)
{
    printed->fd = memfd_create("printed", MFD_CLOEXEC);
    printed->saved = dup(STDERR_FILENO);
    ck_assert_int_ne(printed->fd, -1);
    ck_assert_int_ne(printed->saved, -1);
    fflush(stderr);
    ck_assert_int_ne(dup2(printed->fd, STDERR_FILENO), -1);
}

void printed_end(struct printed *printed, char text[PRINTED_MAX])
{
    ssize_t n;

    fflush(stderr);
    ck_assert_int_ne(dup2(printed->saved, STDERR_FILENO), -1);
    close(printed->saved);
    n = pread(printed->fd, text, PRINTED_MAX - 1, 0);
    close(printed->fd);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
}

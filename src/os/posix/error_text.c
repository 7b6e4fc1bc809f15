/* SPDX-License-Identifier: BSD-2-Clause */
/* The words for an errno by the strerror_r() of POSIX, which fills in the text. The C libraries
 * that have another one show this to who does not ask for theirs. */
#undef _GNU_SOURCE
#include "os/error_text.h"

#include <stdio.h>
#include <string.h>

const char *error_text(int error, char *text, size_t n)
{
    if (strerror_r(error, text, n) != 0)
        snprintf(text, n, "Unknown error %d", error);
    return text;
}

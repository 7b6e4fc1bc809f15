/* SPDX-License-Identifier: BSD-2-Clause */
/* The words for an errno by glibc's strerror_r(), which returns them. */
#include "os/error_text.h"

#include <string.h>

const char *error_text(int error, char *text, size_t n)
{
    return strerror_r(error, text, n);
}

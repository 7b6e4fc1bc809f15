/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a call of OpenSSL has failed: see reason.h. */
#include "keeper/reason.h"

#include <assert.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

const char *reason_take(char *out, size_t size, const char *what)
{
    const char *before = " (SSL: ", *data;
    char error[256];
    unsigned long code;
    size_t n;
    int flags;

    assert(size > 2);
    n = (size_t)snprintf(out, size - 1, "%s failed", what); /* a parenthesis still fits */
    while (n < size - 1 && (code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags)) != 0) {
        ERR_error_string_n(code, error, sizeof(error));
        n += (size_t)snprintf(out + n, size - 1 - n, "%s%s%s%s", before, error,
            (flags & ERR_TXT_STRING) != 0 && data[0] != '\0' ? ":" : "",
            (flags & ERR_TXT_STRING) != 0 ? data : "");
        before = " ";
    }
    ERR_clear_error();
    n = strlen(out);
    if (before[1] == '\0')
        memcpy(out + n, ")", 2);
    return out;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a peer's certificate is not trusted, in the words of OpenSSL, as logs have them: a process
 * without X.509 code has a number alone. */
#pragma once

#include <stdint.h>

/* Returns the text of a X509_V_ERR_...; NULL: a newer library has added the error. */
const char *tls_verify_text(int32_t code);

/* SPDX-License-Identifier: BSD-2-Clause */
/* libssl, loaded by the process that shakes hands; the daemon is not linked with libssl.
 *
 * Responsible for loading the library that configure has found, and for a typed pointer to each of
 * its functions that is called (libssl.def). Never unloads the library, to whose texts libcrypto
 * points. Environment variables and files of OpenSSL's configuration have no effect. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

struct libssl {
#define LIBSSL(function) __typeof__(function) *function;
#include "keeper/libssl.def"
#undef LIBSSL
};

/* The longest text of a failure to load. */
#define LIBSSL_TEXT 256

/* Loads and initialises the library; -1 with a text of why. */
int libssl_load(struct libssl *lib, char text[LIBSSL_TEXT]);
typedef void *libssl_get_ex_data(const SSL *ssl, int index);

/* Finds SSL_get_ex_data() in the loaded library, for a callback without an argument. */
libssl_get_ex_data *libssl_ex_data(void);

/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a key and a self-signed certificate in memory. certificate_openssl.c calls libcrypto;
 * certificate_none.c: a build without OpenSSL. Nothing but `forkbeard certificate` calls this, so
 * that no daemon initialises libcrypto here. */
#pragma once

#include "base/log.h"
#include "cli/certificate_name.h"

/* Limit of names in one certificate. */
#define CERTIFICATE_NAMES_MAX 100
/* Limit of the common name, which is the first name (RFC 5280, ub-common-name). */
#define CERTIFICATE_COMMON_NAME_MAX 64

struct certificate_order {
    struct certificate_name names[CERTIFICATE_NAMES_MAX];
    unsigned name_n; /* 1 or more */
    int days;        /* days from now until the certificate expires */
};

/* Both texts are allocated, or NULL; the caller wipes the key. */
struct certificate {
    char *certificate;            /* as PEM */
    char *key;                    /* PEM, PKCS #8 without a password */
    char fingerprint[3 * 32 + 1]; /* SHA-256 of the certificate: "AB:01:..." */
};

/* Returns -1 after an emerg line; texts may be set in either case. */
int certificate_make(
    const struct certificate_order *order, struct certificate *made, struct log *log);

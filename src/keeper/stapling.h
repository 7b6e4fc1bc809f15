/* SPDX-License-Identifier: BSD-2-Clause */
/* Responses of OCSP from files, stapled to the certificates that they are about.
 *
 * Never asks a responder, and never sends a response that is out of date: clients would take the
 * certificate for a bad one. */
#pragma once

#include "keeper/libssl.h"
#include "keeper/pem.h"

struct staple;

/* The responses of a profile; zeroed at first. */
struct stapling {
    const struct libssl *lib;
    struct staple *list;
    unsigned n;
};

/* Reads the files of the profile; -1 after a line about each mistake. */
int stapling_open(struct stapling *stapling, const struct libssl *lib,
    const struct tls_profile *profile, struct pem_files *files, struct log *log);
/* Answers clients of the context, for as long as `stapling` stays at its place. */
void stapling_attach(struct stapling *stapling, const struct libssl *lib, SSL_CTX *ctx);
void stapling_close(struct stapling *stapling);

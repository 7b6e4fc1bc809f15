/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups of the key exchange: a profile's names for libssl, and IANA's numbers of libssl's. */
#pragma once

#include "keeper/libssl.h"
#include "tls/profile.h"

/* Sets the groups that the profile names, or the default; -1 after an emerg line. */
int groups_set(
    const struct libssl *lib, SSL_CTX *ctx, const struct tls_profile *profile, struct log *log);
/* Returns IANA's number for what SSL_CTRL_GET_NEGOTIATED_GROUP returns; 0: none. */
uint16_t groups_number(long negotiated);

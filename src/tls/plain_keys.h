/* SPDX-License-Identifier: BSD-2-Clause */
/* Random bytes and keys of the engine without cryptography, which are never secret: equal numbers
 * make equal bytes. */
#pragma once

#include "tls/profile.h"

#define PLAIN_RANDOM 32

/* Makes the random bytes of the client's handshake of a number. */
void plain_keys_random(uint8_t random[PLAIN_RANDOM], uint64_t number);
/* Makes the keys of a direction, at record 0, from the random bytes of the handshake. */
void plain_keys_make(
    struct tls_keys *keys, const uint8_t random[PLAIN_RANDOM], enum tls_role sender);

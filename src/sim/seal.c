/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of a simulated kernel that seals the output of a socket, by CIPHER_PLAIN alone, and
 * sealed bytes without room in the socket. Never knows the socket. */
#include "os/kernel_tls.h"
#include "sim/sim_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct sim_seal *sim_seal_create(const struct os_tls_keys *keys)
{
    struct sim_seal *seal = calloc(1, sizeof(*seal));

    assert(seal != NULL && keys->cipher == OS_TLS_PLAIN);
    seal->ciphers = ciphers_create();
    seal->suite = tls_suite_find(0);
    assert(seal->ciphers != NULL && seal->suite->version == keys->version);
    seal->keys.sequence = keys->sequence;
    memcpy(seal->keys.key, keys->key, cipher_key_size(CIPHER_PLAIN));
    memcpy(seal->keys.iv, keys->iv, CIPHER_NONCE);
    return seal;
}

void sim_seal_add(struct sim_seal *seal, enum tls_type type, const uint8_t *p, size_t n)
{
    for (size_t at = 0, part, sealed; at < n; at += part) {
        struct iovec piece = { (void *)(uintptr_t)(p + at), 0 };

        piece.iov_len = part = n - at < TLS_PLAIN_MOST ? n - at : TLS_PLAIN_MOST;
        seal->bytes = realloc(seal->bytes, seal->n + part + TLS_OVERHEAD);
        assert(seal->bytes != NULL);
        sealed = tls_record_seal(
            seal->ciphers, seal->suite, &seal->keys, type, &piece, 1, part, seal->bytes + seal->n);
        assert(sealed > 0);
        seal->n += sealed;
    }
}

void sim_seal_drop(struct sim_seal *seal, size_t n)
{
    assert(n <= seal->n);
    seal->n -= n;
    memmove(seal->bytes, seal->bytes + n, seal->n);
}

void sim_seal_free(struct sim_seal *seal)
{
    if (seal == NULL)
        return;
    ciphers_destroy(seal->ciphers);
    free(seal->bytes);
    free(seal);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS in the kernel, for the output of a TCP socket: the kernel is given the keys in the middle of
 * a connection, seals what is sent from there on, and never gives the keys back. A failure is -1
 * with errno. Never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Equal to enum cipher (tls/cipher.h). */
enum os_tls_cipher {
    OS_TLS_PLAIN, /* no kernel's but the simulated */
    OS_TLS_AES_128_GCM,
    OS_TLS_AES_256_GCM,
    OS_TLS_CHACHA20_POLY1305,
    OS_TLS_CIPHERS,
};

struct os_tls_keys {
    uint16_t version; /* TLS 1.2: 0x0303; 1.3: 0x0304 */
    enum os_tls_cipher cipher;
    const uint8_t *key, *iv; /* iv: 12 bytes; GCM of TLS 1.2 uses the first four */
    uint64_t sequence;       /* number of the next record */
};

/* Makes the kernel load its module, which a process without CAP_NET_ADMIN cannot; ENOENT: the
 * kernel has none, ENOSYS: the system has no such thing. */
int os_tls_load(void);
/* Gives the kernel the keys; after a failure the socket sends as before. ENOBUFS: the send buffer
 * is too small for what the kernel keeps in it. */
int os_tls_seal(int fd, const struct os_tls_keys *keys);
/* Sends a record of another type than data; returns n, as the kernel never takes a part. */
ssize_t os_tls_send(int fd, uint8_t type, const void *p, size_t n);
/* Gives the number of the next record, and the bytes that the socket has taken since the beginning
 * of the connection: sealed bytes that the kernel still keeps beside the socket are not among them.
 * EAGAIN: the peer acknowledges at this moment, so ask again; EPIPE: the connection is over. */
int os_tls_progress(int fd, enum os_tls_cipher cipher, uint64_t *sequence, uint64_t *taken);
/* Gives the bytes alone, also of a socket without keys. */
int os_tls_taken(int fd, uint64_t *taken);

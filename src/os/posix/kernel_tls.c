/* SPDX-License-Identifier: BSD-2-Clause */
/* No TLS in the kernel. */
#include "os/kernel_tls.h"

#include <errno.h>

int os_tls_load(void)
{
    errno = ENOSYS;
    return -1;
}

int os_tls_seal(int fd, const struct os_tls_keys *keys)
{
    (void)fd;
    (void)keys;
    errno = ENOSYS;
    return -1;
}

ssize_t os_tls_send(int fd, uint8_t type, const void *p, size_t n)
{
    (void)fd;
    (void)type;
    (void)p;
    (void)n;
    errno = ENOSYS;
    return -1;
}

int os_tls_progress(int fd, enum os_tls_cipher cipher, uint64_t *sequence, uint64_t *taken)
{
    (void)fd;
    (void)cipher;
    (void)sequence;
    (void)taken;
    errno = ENOSYS;
    return -1;
}

int os_tls_taken(int fd, uint64_t *taken)
{
    (void)fd;
    (void)taken;
    errno = ENOSYS;
    return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Linux's TLS of sockets (tls.ko, since 4.13), by options of the level SOL_TLS.
 *
 * The option that makes a socket one of TLS can succeed, and the keys be refused: a socket without
 * keys sends what it is given. Copies of keys are overwritten. */
#include "os/kernel_tls.h"

#include <endian.h>
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Headers may be older; the numbers are the kernel's. */
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
enum { OPTION_OUTPUT = 1 /* TLS_TX */, RECORD_TYPE = 1 /* TLS_SET_RECORD_TYPE */ };

#define TLS_OF_1_2 0x0303
#define NUMBER 8 /* bytes of a record's number */
#define HEADER 4 /* version and cipher */
#define IV_MOST 12
#define INFO_MOST (HEADER + IV_MOST + 32 + NUMBER)
#define STATE_CLOSE 7
#define RECORD_SEALED (16384 + 29)
/* Tries to see the socket between two acknowledgements. */
#define LOOKS 4

/* Parts of the struct of keys (linux/tls.h): header, iv, key, salt, number of the next record. */
static const struct info_layout {
    uint16_t number;
    uint8_t iv, key, salt;
} layouts[OS_TLS_CIPHERS] = {
    [OS_TLS_AES_128_GCM] = { 51, 8, 16, 4 },
    [OS_TLS_AES_256_GCM] = { 52, 8, 32, 4 },
    [OS_TLS_CHACHA20_POLY1305] = { 54, 12, 32, 0 },
};

static size_t info_size(const struct info_layout *layout)
{
    return (size_t)HEADER + layout->iv + layout->key + layout->salt + NUMBER;
}

int os_tls_load(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status, error;

    if (fd == -1)
        return -1;
    status = setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls"));
    error = errno;
    close(fd);
    if (status == 0 || error == ENOTCONN) /* the module looks at the socket: it is there */
        return 0;
    errno = error;
    return -1;
}

/* Fills in the struct of keys; returns its size. */
static size_t fill_info(const struct os_tls_keys *keys, uint8_t info[INFO_MOST])
{
    const struct info_layout *layout = &layouts[keys->cipher];
    const uint16_t header[] = { keys->version, layout->number };
    uint64_t number = htobe64(keys->sequence);
    uint8_t *p = info;

    memcpy(p, header, HEADER);
    p += HEADER;
    if (keys->version == TLS_OF_1_2 && layout->salt > 0)
        memcpy(p, &number, NUMBER); /* the part of a nonce in the record: unique by the number */
    else
        memcpy(p, keys->iv + layout->salt, layout->iv);
    p += layout->iv;
    memcpy(p, keys->key, layout->key);
    p += layout->key;
    memcpy(p, keys->iv, layout->salt);
    p += layout->salt;
    memcpy(p, &number, NUMBER);
    return info_size(layout);
}

/* Whether the socket can send whatever fills its buffer. sendfile() and splice() announce more, and
 * the kernel then keeps what is shorter than a segment: where the buffer holds no whole segment,
 * nothing would ever leave, nor more be taken. */
static bool has_buffer(int fd)
{
    struct tcp_info info = { .tcpi_snd_mss = 0 };
    socklen_t info_n = sizeof(info), bytes_n = sizeof(int);
    int bytes = 0;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_n) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &bytes_n) == 0 &&
           (uint64_t)bytes >= 2 * ((uint64_t)info.tcpi_snd_mss + RECORD_SEALED);
}

int os_tls_seal(int fd, const struct os_tls_keys *keys)
{
    uint8_t info[INFO_MOST];
    int status;
    size_t n;

    if (layouts[keys->cipher].number == 0) {
        errno = ENOENT;
        return -1;
    }
    if (!has_buffer(fd)) {
        errno = ENOBUFS;
        return -1;
    }
    /* a socket has the module from an earlier failure, perhaps */
    if (setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == -1 && errno != EEXIST)
        return -1;
    n = fill_info(keys, info);
    status = setsockopt(fd, SOL_TLS, OPTION_OUTPUT, info, (socklen_t)n);
    explicit_bzero(info, sizeof(info));
    return status;
}

ssize_t os_tls_send(int fd, uint8_t type, const void *p, size_t n)
{
    union {
        struct cmsghdr header;
        uint8_t bytes[CMSG_SPACE(sizeof(type))];
    } control = { .header = { CMSG_LEN(sizeof(type)), SOL_TLS, RECORD_TYPE } };
    struct iovec piece = { (void *)(uintptr_t)p, n };
    const struct msghdr message = { .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control) };
    ssize_t sent;

    *CMSG_DATA(&control.header) = type;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent == -1 && errno == EINTR);
    return sent;
}

int os_tls_taken(int fd, uint64_t *taken)
{
    uint64_t acknowledged = 0;
    struct tcp_info info;
    socklen_t n;
    int queued = 0;

    for (int i = 0; i < LOOKS; i++) {
        memset(&info, 0, sizeof(info));
        n = sizeof(info);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == -1)
            return -1;
        if (info.tcpi_state == STATE_CLOSE) {
            errno = EPIPE;
            return -1;
        }
        if (i > 0 && info.tcpi_bytes_acked == acknowledged) {
            *taken = acknowledged + (uint64_t)queued;
            return 0;
        }
        acknowledged = info.tcpi_bytes_acked;
        if (ioctl(fd, SIOCOUTQ, &queued) == -1)
            return -1;
    }
    errno = EAGAIN;
    return -1;
}

int os_tls_progress(int fd, enum os_tls_cipher cipher, uint64_t *sequence, uint64_t *taken)
{
    size_t size = info_size(&layouts[cipher]);
    uint8_t info[INFO_MOST];
    socklen_t n = (socklen_t)size;
    uint64_t number;

    if (getsockopt(fd, SOL_TLS, OPTION_OUTPUT, info, &n) == -1)
        return -1;
    memcpy(&number, info + size - NUMBER, NUMBER);
    explicit_bzero(info, sizeof(info));
    *sequence = be64toh(number);
    return os_tls_taken(fd, taken);
}

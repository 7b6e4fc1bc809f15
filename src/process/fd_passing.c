/* SPDX-License-Identifier: BSD-2-Clause */
/* The two halves of SCM_RIGHTS. A message has one descriptor at most; a sender that is not trusted
 * may add more, and these are received as well: what the kernel closes for a receiver without room,
 * it closes as the sender wants it, and a socket with SO_LINGER waits for a peer that never
 * reads. */
#include "process/fd_passing.h"

#include "process/fd_passing_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PASSED_MAX 253 /* descriptors of a message, by the kernel (SCM_MAX_FD) */
/* Packets that a socket may hold, with room to spare. */
#define PACKETS_MAX 1024

union fd_control {
    struct cmsghdr header;
    char room[CMSG_SPACE(PASSED_MAX * sizeof(int))];
};

ssize_t fd_send(int socket, const void *bytes, size_t n, int passed)
{
    struct iovec piece = { (void *)bytes, n };
    struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
    union fd_control control;
    ssize_t sent;

    assert(n > 0); /* a descriptor without a byte does not arrive */
    if (passed != -1) {
        memset(&control, 0, CMSG_SPACE(sizeof(int)));
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &passed, sizeof(int));
    }
    sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    if (sent == -1 && errno == ECONNRESET) /* the receiver has closed with unread messages */
        errno = EPIPE;
    return sent;
}

void fd_widen(int socket, int bytes)
{
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

void fd_send_slowly(int socket, int seconds)
{
    struct timeval limit = { .tv_sec = seconds };

    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    fcntl(socket, F_SETFL, 0);
}

/* Takes the descriptors out of one part of a message: the first that *passed has no other for, and
 * discards the rest. */
static void take_descriptors(const struct cmsghdr *part, int *passed)
{
    const unsigned char *bytes = CMSG_DATA(part);
    size_t n = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, bytes + i * sizeof(int), sizeof(int));
        fd_set_received(fd);
        if (*passed == -1)
            *passed = fd;
        else
            fd_discard(fd);
    }
}

ssize_t fd_receive(int socket, void *bytes, size_t n, int *passed)
{
    struct iovec piece = { bytes, n };
    union fd_control control;
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control.room),
    };
    ssize_t received = fd_receive_message(socket, &header);
    struct cmsghdr *part = received >= 0 ? CMSG_FIRSTHDR(&header) : NULL;

    *passed = -1;
    for (; part != NULL; part = CMSG_NXTHDR(&header, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
            take_descriptors(part, passed);
    return received;
}

void fd_discard(int fd)
{
    static const struct linger none = { .l_onoff = 0 };
    int saved = errno;

    assert(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)); /* fails for what is no socket */
    close(fd);
    errno = saved;
}

void fd_close_socket(int socket)
{
    assert(socket >= 0);
    if (!fd_is_refused(socket)) {
        shutdown(socket, SHUT_RDWR);
        for (int i = 0; i < PACKETS_MAX; i++) { /* an empty packet looks like the end */
            char byte;
            int passed;

            if (fd_receive(socket, &byte, 1, &passed) == -1)
                break;
            if (passed != -1)
                fd_discard(passed);
        }
    }
    close(socket);
}
